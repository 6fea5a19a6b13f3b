"""The run folder: `RunFolder` alone reads and writes the files of a run.

    runs/sst/
      manifest.json      what heedmap wrote here, with sizes and hashes
      settings.toml  vocabulary.json  model.safetensors  training.json
      tables/*.parquet   tables/about.json   findings.json   report.html
      retrained/         further models, trained to be compared with this one
      dynamics/          what was recorded while the model was trained
      texts/             the texts, where they came from memory
      extra/             other packages' files about this model

Files are listed, then written atomically, and everything after the tables is a function of the tables. During
training there is checkpoint.safetensors instead of the model; a transformer's model is the folder model/. One
process at a time writes in a folder (`RunFolder.locked`). After the manifest the settings are written first and
removed last, so that files left by a killed process can be assigned to their run.
"""

import json
import os
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from heedmap.errors import InputError
from heedmap.files.manifest import MANIFEST, ChangedError, File, Listing, Manifest
from heedmap.files.reading import read_bytes
from heedmap.files.storage import encoded, leftovers, refuse_file, remove, write_atomically
from heedmap.runs.comparison import differences, relocated
from heedmap.runs.places import Out, is_free, reserve_folder
from heedmap.settings import ModelSettings, RunSettings, TrainSettings, TransformerSettings
from heedmap.terminal.output import remark, some_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from torch import Tensor

    from heedmap.data.in_memory import InMemory
    from heedmap.training.fit import Trained

CHECKPOINT = "checkpoint.safetensors"
SETTINGS = "settings.toml"
DYNAMICS = "dynamics"
# In the order of removal: first what marks a run as finished, last the settings, which identify it.
OWN = (
    "model.safetensors",
    "model",
    "report.html",
    "findings.json",
    "tables",
    "retrained",
    DYNAMICS,
    "extra",
    "texts",
    "test.json",  # in runs of older versions
    "training.json",
    "vocabulary.json",
    CHECKPOINT,
    SETTINGS,
)
R = TypeVar("R")


class RunFolder:
    """The folder of one run.

    `checkpoint` is the file of an unfinished training, `model` the folder of a transformer fine-tuned here,
    `tables` the folder of the audit's tables, `retrained` that of further models to compare with it,
    `dynamics` that of what was recorded while the model was trained, `texts` that of texts from memory, `extra`
    a folder for code that builds on runs. `manifest` lists the files.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser()
        self.manifest = Manifest(self.path)
        self.checkpoint = self.path / CHECKPOINT
        self.model = self.path / "model"
        self.tables = self.path / "tables"
        self.extra = self.path / "extra"
        self.retrained = self.path / "retrained"
        self.dynamics = self.path / DYNAMICS
        self.texts = self.path / "texts"
        self.report = self.path / "report.html"
        self._settings = self.path / SETTINGS
        self._weights = self.path / "model.safetensors"
        self._vocabulary = self.path / "vocabulary.json"
        self._training = self.path / "training.json"
        self._findings = self.path / "findings.json"

    @classmethod
    @contextmanager
    def locked(cls, out: Out, settings: RunSettings) -> "Iterator[RunFolder]":
        """Lock the folder for a run (see `places.reserve_folder`)."""

        def is_this_run(path: Path) -> bool:
            try:
                return not differences(RunSettings.read(path / SETTINGS), settings)
            except InputError:
                return False

        with reserve_folder(out, is_this_run, OWN) as path:
            yield cls(path)

    # Settings

    def settings(self, *, moved: bool = False) -> RunSettings:
        """Read the settings of the run.

        Args:
            moved: accept settings in which the places of data or model were edited, where the caller checks
                what is there.

        Raises:
            InputError: no run there, or its settings cannot be read or were edited.
        """
        if not self.is_begun():
            raise InputError(
                f"{self.path}: no run there (no settings.toml); `heedmap list` shows the runs"
            )
        if self.is_reproduction():
            raise InputError(
                f"{self.path}: expected a run, got a paper's reproduction; open its result.html, or draw it "
                "with `heedmap figures`"
            )
        settings = RunSettings.read(self._settings)
        self._check_settings(settings, moved)
        return settings

    def _check_settings(self, settings: RunSettings, moved: bool) -> None:
        """Raise InputError if the settings were edited, or have no training for their model."""
        from heedmap.files.identity import settings_hash  # torch is slow to import

        listing = self.manifest.load()
        if not self._is_as_written(self._settings):
            only_moved = settings_hash(settings) == listing.settings
            if not only_moved:
                raise InputError(
                    f"{self._settings}: was edited after the run was made, which would be shown with settings "
                    "that it does not have; bring it back, or make another run"
                )
            if not moved:
                raise InputError(
                    f"{self._settings}: the place of data or model was edited; `heedmap audit --run "
                    f"{self.path}` checks what is there now"
                )
        own = isinstance(settings.model, ModelSettings)
        if own != isinstance(settings.train, TrainSettings) and (own or settings.train is not None):
            raise InputError(
                f"{self._settings}: expected in [train] how its model was trained, got "
                f"{'nothing' if settings.train is None else 'that of another kind of model'}; bring it back, "
                "or make the run again"
            )

    def _is_as_written(self, path: Path) -> bool:
        """Whether a file is as the manifest says, or there is none."""
        if not self.manifest.exists:
            return True
        try:
            self.manifest.check(path)
        except (InputError, OSError):
            return False
        return True

    def is_begun(self) -> bool:
        """Whether a run is there, finished or not."""
        return os.path.lexists(self._settings)

    def is_reproduction(self) -> bool:
        """Whether the folder is a paper's, with parts and a result of its own."""
        return any((self.path / name).exists() for name in ("parts", "result.md"))

    def check_unchanged(self, settings: RunSettings) -> None:
        """Raise InputError if the run that was just read has been replaced meanwhile."""
        if RunSettings.read(self._settings) != settings:
            raise InputError(f"{self.path}: was written anew while it was read; try again")

    def write_settings(self, settings: RunSettings) -> None:
        """Write settings.toml, unless it says that already."""
        from heedmap.files.identity import settings_hash

        text, made_with = settings.to_toml(), settings_hash(settings)

        def note(listing: Listing) -> None:
            listing.settings = made_with

        if self.manifest.exists and self.manifest.load().settings != made_with:
            self.manifest.change(note)
        elif self.is_begun() and self._is_as_written(self._settings):
            with suppress(OSError):
                if read_bytes(self._settings) == encoded(text):
                    return
        self._write(self._settings, text)

    def holds_another(self, settings: RunSettings, overwrite: bool) -> bool:
        """Whether another run is there, to be cleared first; True only with `overwrite`. Writes nothing.

        Raises:
            InputError: another run without `overwrite` (the differences are named), files that are not a
                run's or are not listed, or the new run's own input.
        """
        refuse_file(self.path)
        if not self.is_begun():
            if not is_free(self.path, OWN):
                raise InputError(
                    f"{self.path}: holds files that are not a run's; choose another --out"
                )
            return False
        if overwrite:
            self._check_input(settings)
        changed = self._changes(settings, overwrite)
        if changed and not overwrite:
            raise InputError(
                f"{self.path}: holds a run with other settings ({'; '.join(changed)}); choose another --out, "
                "or insist with --overwrite (in Python overwrite=True)"
            )
        if changed:
            self._check_listed()
        return bool(changed)

    def _changes(self, settings: RunSettings, overwrite: bool) -> list[str]:
        """Return the differences of the settings there; of unreadable ones only with `overwrite`."""
        try:
            return differences(RunSettings.read(self._settings), settings)
        except InputError as error:
            if not self.manifest.exists:
                raise InputError(
                    f"{self.path}: holds files that are not a run's (its settings.toml is another program's, "
                    "or damaged); choose another --out"
                ) from error
            if overwrite:
                return ["unreadable"]
            raise

    def _check_listed(self) -> None:
        """Raise InputError unless a manifest says what may be removed, and nothing else is in the way."""
        if not self.manifest.exists:
            raise InputError(
                f"{self.path}: has no {MANIFEST} that lists what heedmap wrote there, as in older versions, so "
                "nothing is removed; delete the folder yourself, or choose another --out"
            )
        self.manifest.refuse_taken(OWN, whole=("model",))

    def _check_input(self, settings: RunSettings) -> None:
        """Raise InputError if overwriting would delete the run's own input."""
        own = [self.path.resolve() / name for name in OWN]
        for part in (settings.data, settings.model, settings.train):
            for name in ("source", "base", "vectors"):
                path = getattr(part, name, None)
                if path is not None and any(
                    one in (p := Path(path).resolve(), *p.parents) for one in own
                ):
                    raise InputError(
                        f"{path}: lies in {self.path}, where --overwrite would delete it; choose another --out"
                    )

    def finished(
        self,
        settings: RunSettings,
        overwrite: bool,
        load: "Callable[[RunFolder, RunSettings], R]",
    ) -> R | None:
        """Return the run with these settings if it is there and fully trained, else None.

        If texts or vectors have moved, the settings are updated.

        Raises:
            InputError: as `holds_another`, or the run is damaged and not to be overwritten.
        """
        if self.holds_another(settings, overwrite) or not self.is_trained(settings):
            return None
        try:
            run = load(self, relocated(RunSettings.read(self._settings), settings))
        except InputError:
            if not overwrite:
                raise
            return None
        self.relocate(settings)
        self.tidy()
        return run

    def relocate(self, settings: RunSettings) -> None:
        """Update the paths in a finished run's settings to those of `settings`."""
        found = RunSettings.read(self._settings)
        if (moved := relocated(found, settings)) != found:
            self.write_settings(moved)

    def begin(self, settings: RunSettings, *, resume: bool) -> None:
        """Prepare the folder for a training: to `resume`, the checkpoint stays, and what was recorded."""
        self.clear((SETTINGS, CHECKPOINT, DYNAMICS) if resume else (SETTINGS,))
        self.manifest.start()
        self.write_settings(settings)

    def clear(self, keep: Collection[str] = ()) -> None:
        """Remove only what the manifest lists, except the files in `keep`.

        Raises:
            InputError: a run without a manifest.
        """
        if self.is_begun():
            self._check_listed()
            listed = self.manifest.load().files
            tops = dict.fromkeys(name.split("/")[0] for name in listed)
            folders = [name for name in tops if (self.path / name).is_dir()]
            self.manifest.remove(*(name for name in tops if name not in OWN), *OWN, keep=keep)
            if left := self.manifest.others([name for name in folders if name not in keep]):
                remark(f"{self.path}: left alone, for heedmap did not write them: {some_of(left)}")
        for path in leftovers(self.path, OWN):
            remove(path)
        if not keep:
            remove(self.manifest.path)

    def tidy(self) -> None:
        """Remove what killed processes left in a finished run's folder."""
        if self.manifest.exists:
            self.manifest.remove(CHECKPOINT)
            self.manifest.settle()
            for path in leftovers(self.path, (*OWN, MANIFEST)):
                remove(path)
            return
        for path in (*leftovers(self.path, OWN), *leftovers(self.tables), self.checkpoint):
            remove(path)

    def take_over(self, places: Collection[str]) -> None:
        """Prepare for an audit: check that no other files are in its places; list those of an older version.

        Raises:
            InputError: a file that heedmap did not write is in one of the places. Nothing is written then.
        """
        from heedmap.files.table_folder import older_files

        if self.manifest.exists:
            self.manifest.refuse_taken(places)
            return
        own = (self._settings, self._findings, self.report)
        identity, tables = older_files(self.tables)
        files = {path.name: file for path in own if (file := File.at(path)) is not None} | tables
        self.manifest.refuse_taken(places, known=files)

        def add(listing: Listing) -> None:
            listing.files.update(files)
            listing.tables = identity

        self.manifest.start(older=self.is_begun())
        self.manifest.change(add)

    def _write(self, path: Path, content: bytes | str) -> None:
        if self.manifest.exists:
            self.manifest.write(path, content)
        else:
            write_atomically(path, content)

    def _read(self, path: Path) -> bytes:
        return self.manifest.read(path) if self.manifest.exists else read_bytes(path)

    # Texts

    def keep_texts(self, given: "InMemory | None") -> None:
        """Write the texts of a run that came from memory, unless the folder has them."""
        if given is None:
            return
        files = given.files()
        if {path.name: path.read_bytes() for path in self.texts.glob("*.jsonl")} != files:
            for name, content in files.items():
                self._write(self.texts / name, content)
            stale = {*self._listed_texts()} - {*files}
            self.manifest.remove(*(f"{self.texts.name}/{name}" for name in stale))

    def kept_texts(self) -> "InMemory | None":
        """Read the texts that the run keeps in its folder; None where there are none.

        Raises:
            InputError: they are damaged.
        """
        from heedmap.data.in_memory import kept_in

        if not self.texts.is_dir():
            return None
        for path in sorted(self.texts.glob("*.jsonl")):
            if not self._is_as_written(path):
                raise InputError(
                    f"{path}: not the text that was given; bring it back, or make the run again from its data"
                )
        return kept_in(self.texts)

    def _listed_texts(self) -> list[str]:
        prefix = self.texts.name
        return [name.removeprefix(f"{prefix}/") for name in self.manifest.load().below([prefix])]

    # Model

    def is_trained(self, settings: RunSettings) -> bool:
        """Whether the model is there: it is written last."""
        transformer = isinstance(settings.model, TransformerSettings)
        model = self.model if transformer else self._weights
        listing = self.manifest.load()
        if not self.manifest.exists or listing.older:
            return model.exists()
        names = listing.below([model.name])
        return bool(names) and all((self.path / name).exists() for name in names)

    def check_model(self) -> None:
        """Check the files of a transformer that was fine-tuned here.

        Raises:
            InputError: one is missing or not as it was written.
        """
        try:
            for name in self.manifest.load().below([self.model.name]):
                self.manifest.check(self.path / name)
        except OSError as error:
            raise self.damaged(error) from error

    def write_training(self, trained: "Trained", identity: str) -> None:
        """Write a training's scores and the identity of its model."""
        content = {**asdict(trained), "identity": identity}
        self._write(self._training, json.dumps(content, indent=1))

    def training(self) -> "tuple[Trained, str | None]":
        """Read the training's scores and its model's identity (None in runs of older versions).

        Raises:
            InputError: missing or damaged.
        """
        from pydantic import TypeAdapter

        from heedmap.training.fit import Trained

        try:
            about = json.loads(self._read(self._training))
            trained = TypeAdapter(Trained).validate_python(about)
            identity = about.get("identity")
            if not 0 <= trained.best_epoch < len(trained.scores) or not isinstance(
                identity, str | None
            ):
                raise ValueError("not what a training writes")
        except ChangedError:
            raise
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(
                f"{self._training}: damaged ({type(error).__name__}); make the run again with the command that "
                "made it and --overwrite"
            ) from error
        return trained, identity

    def write_dynamics(self, recorded: "pa.Table") -> None:
        """Write what was recorded in a training that had no folder, or another."""
        from heedmap.files.tables import parquet

        self._write(self.dynamics / "0000.parquet", parquet(recorded))

    def write_model(
        self, words: list[str], classes: list[str], tensors: "Mapping[str, Tensor]"
    ) -> None:
        """Write words, classes and weights of an attention model. The weights come last: they mark the end."""
        from safetensors.torch import save

        vocabulary = {"classes": classes, "words": words}
        self._write(self._vocabulary, json.dumps(vocabulary, ensure_ascii=False))
        self._write(self._weights, save({k: v.detach().contiguous() for k, v in tensors.items()}))

    def read_model(self) -> "tuple[list[str], list[str], dict[str, Tensor]]":
        """Read words, classes and weights of an attention model that was trained here.

        Raises:
            InputError: it is damaged.
        """
        from safetensors import SafetensorError
        from safetensors.torch import load

        try:
            vocabulary = json.loads(self._read(self._vocabulary))
            words, classes = vocabulary["words"], vocabulary["classes"]
            if not all(isinstance(name, str) for name in (*words, *classes)):
                raise TypeError("expected words and classes")
            return words, classes, load(self._read(self._weights))
        except (
            OSError,
            ValueError,
            LookupError,
            TypeError,
            RecursionError,
            SafetensorError,
        ) as error:
            raise self.damaged(error) from error

    def damaged(self, error: Exception) -> InputError:
        """Return the error for a model that cannot be read."""
        text = (str(error).splitlines() or [""])[0]
        return InputError(
            f"{self.path}: the run is damaged ({type(error).__name__}: {text}); make it again with the command "
            "that made it and --overwrite"
        )

    # Report

    def write_conclusions(self, findings: str, report: str) -> None:
        """Write findings.json and report.html."""
        self._write(self._findings, findings)
        self._write(self.report, report)

    def findings(self) -> dict[str, Any] | None:
        """Read what findings.json holds; None if the run is not audited to the end.

        Raises:
            InputError: the file is damaged.
        """
        if not self.report.exists():
            return None
        try:
            content = json.loads(self._read(self._findings))
            if not isinstance(content["bottom_line"]["answer"], str) or not all(
                isinstance(finding["key"], str) and isinstance(finding["value"], float | int | None)
                for finding in content["findings"]
            ):
                raise ValueError("expected findings and a bottom line")
        except (OSError, ValueError, TypeError, LookupError, RecursionError) as error:
            taken = os.path.lexists(self._findings) and not self._findings.is_file()
            raise InputError(
                f"{self._findings}: {'no file; move away what is there, and' if taken else 'damaged;'} "
                f"`heedmap report {self.path}` writes it anew"
            ) from error
        return dict(content)

    def remove_conclusions(self) -> None:
        """Remove them. Call it before removing the tables that they are made from."""
        for path in (self.report, self._findings):
            if self.manifest.exists:
                self.manifest.remove(path.name)
            else:
                path.unlink(missing_ok=True)
