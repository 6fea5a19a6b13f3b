"""The run folder: `RunFolder` alone reads and writes the files of a run.

    runs/sst/
      settings.toml  vocabulary.json  model.safetensors  training.json
      tables/*.parquet   tables/about.json   tables/manifest.json   findings.json   report.html
      retrained/         further models, trained to be compared with this one
      dynamics/          what was recorded while the model was trained
      texts/             the texts, where they came from memory
      extra/             other packages' files about this model, removed with it

Files are written atomically, and everything after the tables is a function of the tables. During training
there is checkpoint.safetensors instead of the model; a transformer's model is the folder model/. One process
at a time writes in a folder (`RunFolder.locked`). The settings are written first and removed last, so that
files left by a killed process can be assigned to their run.
"""

import json
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from heedmap.errors import InputError
from heedmap.files.storage import (
    folder_written_whole,
    leftovers,
    refuse_file,
    remove,
    write_atomically,
)
from heedmap.runs.comparison import differences, relocated
from heedmap.runs.places import Out, is_free, reserve_folder
from heedmap.settings import RunSettings, TransformerSettings

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
    a folder for code that builds on runs.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser()
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

    def settings(self) -> RunSettings:
        """Read the settings of the run.

        Raises:
            InputError: no run there, or its settings cannot be read.
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
        return RunSettings.read(self._settings)

    def is_begun(self) -> bool:
        """Whether a run is there, finished or not."""
        return self._settings.exists()

    def is_reproduction(self) -> bool:
        """Whether the folder is a paper's, with parts and a result of its own."""
        return any((self.path / name).exists() for name in ("parts", "result.md"))

    def check_unchanged(self, settings: RunSettings) -> None:
        """Raise InputError if the run that was just read has been replaced meanwhile."""
        if self.settings() != settings:
            raise InputError(f"{self.path}: was written anew while it was read; try again")

    def write_settings(self, settings: RunSettings) -> None:
        """Write settings.toml."""
        write_atomically(self._settings, settings.to_toml())

    def holds_another(self, settings: RunSettings, overwrite: bool) -> bool:
        """Whether another run is there, to be cleared first; True only with `overwrite`. Writes nothing.

        Raises:
            InputError: another run without `overwrite` (the differences are named), files that are not a
                run's, or the new run's own input.
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
        try:
            found = RunSettings.read(self._settings)
        except InputError:
            if overwrite:
                return True
            raise
        changed = differences(found, settings)
        if changed and not overwrite:
            raise InputError(
                f"{self.path}: holds a run with other settings ({'; '.join(changed)}); choose another --out, "
                "or insist with --overwrite (in Python overwrite=True)"
            )
        return bool(changed)

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
        self.write_settings(settings)

    def clear(self, keep: Collection[str] = ()) -> None:
        """Remove only what a run wrote, except the files in `keep`."""
        for name in OWN:
            if name not in keep:
                remove(self.path / name)
        for path in leftovers(self.path, OWN):
            remove(path)

    def tidy(self) -> None:
        """Remove what killed processes left in a finished run's folder."""
        for path in (*leftovers(self.path, OWN), *leftovers(self.tables), self.checkpoint):
            remove(path)

    # Texts

    def keep_texts(self, given: "InMemory | None") -> None:
        """Write the texts of a run that came from memory, unless the folder has them."""
        if given is None:
            return
        files = given.files()
        if {path.name: path.read_bytes() for path in self.texts.glob("*.jsonl")} != files:
            remove(self.texts)
            with folder_written_whole(self.texts) as partial:
                for name, content in files.items():
                    (partial / name).write_bytes(content)

    # Model

    def is_trained(self, settings: RunSettings) -> bool:
        """Whether the model is there: it is written last."""
        transformer = isinstance(settings.model, TransformerSettings)
        return (self.model if transformer else self._weights).exists()

    def write_training(self, trained: "Trained", identity: str) -> None:
        """Write a training's scores and the identity of its model."""
        content = {**asdict(trained), "identity": identity}
        write_atomically(self._training, json.dumps(content, indent=1))

    def training(self) -> "tuple[Trained, str | None]":
        """Read the training's scores and its model's identity (None in runs of older versions).

        Raises:
            InputError: missing or damaged.
        """
        from pydantic import TypeAdapter

        from heedmap.training.fit import Trained

        try:
            about = json.loads(self._training.read_text(encoding="utf-8"))
            trained = TypeAdapter(Trained).validate_python(about)
            identity = about.get("identity")
            if not 0 <= trained.best_epoch < len(trained.scores) or not isinstance(
                identity, str | None
            ):
                raise ValueError("not what a training writes")
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(
                f"{self._training}: damaged ({type(error).__name__}); make the run again with the command that "
                "made it and --overwrite"
            ) from error
        return trained, identity

    def write_dynamics(self, recorded: "pa.Table") -> None:
        """Write what was recorded in a training that had no folder, or another."""
        from heedmap.files.tables import write_table

        write_table(self.dynamics / "0000.parquet", recorded)

    def write_model(
        self, words: list[str], classes: list[str], tensors: "Mapping[str, Tensor]"
    ) -> None:
        """Write words, classes and weights of an attention model. The weights come last: they mark the end."""
        from safetensors.torch import save

        vocabulary = {"classes": classes, "words": words}
        write_atomically(self._vocabulary, json.dumps(vocabulary, ensure_ascii=False))
        write_atomically(
            self._weights, save({k: v.detach().contiguous() for k, v in tensors.items()})
        )

    def read_model(self) -> "tuple[list[str], list[str], dict[str, Tensor]]":
        """Read words, classes and weights of an attention model that was trained here.

        Raises:
            InputError: it is damaged.
        """
        from safetensors import SafetensorError
        from safetensors.torch import load

        try:
            vocabulary = json.loads(self._vocabulary.read_text(encoding="utf-8"))
            words, classes = vocabulary["words"], vocabulary["classes"]
            if not all(isinstance(name, str) for name in (*words, *classes)):
                raise TypeError("expected words and classes")
            return words, classes, load(self._weights.read_bytes())
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
        write_atomically(self._findings, findings)
        write_atomically(self.report, report)

    def findings(self) -> dict[str, Any] | None:
        """Read what findings.json holds; None if the run is not audited to the end.

        Raises:
            InputError: the file is damaged.
        """
        if not self.report.exists():
            return None
        try:
            found = json.loads(self._findings.read_text(encoding="utf-8"))
            if not {"bottom_line", "findings"} <= dict(found).keys():
                raise ValueError("expected findings and a bottom line")
        except (OSError, ValueError, TypeError, RecursionError) as error:
            raise InputError(
                f"{self._findings}: damaged; `heedmap report {self.path}` writes it anew"
            ) from error
        return dict(found)

    def remove_conclusions(self) -> None:
        """Remove them. Call it before removing the tables that they are made from."""
        for path in (self.report, self._findings):
            path.unlink(missing_ok=True)
