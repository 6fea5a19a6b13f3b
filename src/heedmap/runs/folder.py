"""The run folder: which files a run has, its settings, and who may write there.

    runs/sst/
      manifest.json      what heedmap wrote here, with sizes and hashes
      settings.toml  vocabulary.json  model.safetensors  training.json
      tables/*.parquet   tables/about.json   findings.json   report.html
      report-more/       pages of the texts that the report has no room for
      retrained/         further models, trained to be compared with this one
      dynamics/          what was recorded while the model was trained
      texts/             the texts, where they came from memory
      arrays/            the arrays, of a run of arrays
      extra/             other packages' files about this model

Files are listed, then written atomically, and everything after the tables is a function of the tables. During
training there is checkpoint.safetensors instead of the model; a transformer's model is the folder model/. One
process at a time writes in a folder (`RunFolder.locked`). After the manifest the settings are written first and
removed last, so that files left by a killed process can be assigned to their run. `model_files` reads and
writes the model, `audit_folder` the tables, `conclusions` the findings, `occupancy` tells whose run is there.
"""

import os
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING

from heedmap.errors import InputError
from heedmap.files.listing import Listing
from heedmap.files.manifest import MANIFEST, Manifest
from heedmap.files.reading import read_bytes
from heedmap.files.storage import encoded, leftovers, remove
from heedmap.runs.comparison import differences
from heedmap.runs.run_paths import Out, reserve_folder
from heedmap.settings.models import ModelSettings
from heedmap.settings.run import RunSettings
from heedmap.settings.training import TrainSettings
from heedmap.terminal.output import remark, some_of

if TYPE_CHECKING:
    from heedmap.data.in_memory import InMemory

CHECKPOINT = "checkpoint.safetensors"
SETTINGS = "settings.toml"
SWEEP = "sweep.json"  # marks a folder as a sweep
DYNAMICS = "dynamics"
# In the order of removal: first what marks a run as finished, last the settings, which identify it.
RUN_FILES = (
    "model.safetensors",
    "model",
    "report.html",
    "report-more",
    "report-without-texts.html",
    "report-without-texts-more",
    "findings.json",
    "tables",
    "retrained",
    DYNAMICS,
    "extra",
    "texts",
    "arrays",
    "training.json",
    "vocabulary.json",
    CHECKPOINT,
    SETTINGS,
)


class RunFolder:
    """The folder of one run.

    `checkpoint` is the file of an unfinished training, `model` the folder of a transformer fine-tuned here,
    `tables` the folder of the audit's tables, `report_without_texts` a report to forward, `retrained` the
    folder of further models to compare with it, `dynamics` that of what was recorded while the model was
    trained, `texts` that of texts from memory, `arrays` that of a run of arrays, `extra` a folder for code that
    builds on runs. `manifest` lists the files.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path).expanduser()
        self.manifest = Manifest(self.path)
        self.checkpoint = self.path / CHECKPOINT
        self.model = self.path / "model"
        self.weights = self.path / "model.safetensors"
        self.vocabulary = self.path / "vocabulary.json"
        self.training = self.path / "training.json"
        self.tables = self.path / "tables"
        self.extra = self.path / "extra"
        self.retrained = self.path / "retrained"
        self.dynamics = self.path / DYNAMICS
        self.texts = self.path / "texts"
        self.arrays = self.path / "arrays"
        self.findings = self.path / "findings.json"
        self.report = self.path / "report.html"
        self.report_without_texts = self.path / "report-without-texts.html"
        self.settings_file = self.path / SETTINGS

    @classmethod
    @contextmanager
    def locked(cls, out: Out, settings: RunSettings) -> "Iterator[RunFolder]":
        """Lock the folder for a run (see `run_paths.reserve_folder`)."""

        def holds_this_run(path: Path) -> bool:
            try:
                return not differences(RunSettings.read(path / SETTINGS), settings)
            except InputError:
                return False

        with reserve_folder(out, holds_this_run, RUN_FILES) as path:
            yield cls(path)

    def is_begun(self) -> bool:
        """Return whether a run is there, finished or not."""
        return os.path.lexists(self.settings_file)

    def require_begun(self) -> None:
        """Raise InputError unless a run is there, without slow imports: a wrong path is refused at once."""
        if not self.is_begun():
            raise InputError(
                f"{self.path}: no run there (no settings.toml); `heedmap list` shows the runs"
            )

    def is_reproduction(self) -> bool:
        """Return whether the folder is a paper's or a sweep's, with parts or runs and a result of its own."""
        return any((self.path / name).exists() for name in ("parts", "result.md", SWEEP))

    # Settings

    def settings(self, *, moved: bool = False) -> RunSettings:
        """Read the settings of the run.

        Args:
            moved: accept settings in which the places of data or model were edited, where the caller checks
                what is there.

        Raises:
            InputError: no run there, or its settings cannot be read or were edited.
        """
        self.require_begun()
        if self.is_reproduction():
            raise InputError(
                f"{self.path}: expected a run, got a paper's reproduction or a sweep; open its result.html, or "
                "draw it with `heedmap figures`"
            )
        settings = RunSettings.read(self.settings_file)
        self.require_manifest()
        self._check_settings(settings, moved)
        return settings

    def _check_settings(self, settings: RunSettings, moved: bool) -> None:
        """Raise InputError if the settings were edited, or have no training for their model."""
        from heedmap.files.identity import settings_hash  # torch is slow to import

        listing = self.manifest.load()
        if not self._is_as_written(self.settings_file):
            only_moved = settings_hash(settings) == listing.settings
            if not only_moved:
                raise InputError(
                    f"{self.settings_file}: was edited after the run was made, which would be shown with "
                    "settings that it does not have; bring it back, or make another run"
                )
            if not moved:
                raise InputError(
                    f"{self.settings_file}: the place of data or model was edited; `heedmap audit --run "
                    f"{self.path}` checks what is there now"
                )
        of_words = isinstance(settings.model, ModelSettings)
        if of_words != isinstance(settings.train, TrainSettings) and (
            of_words or settings.train is not None
        ):
            raise InputError(
                f"{self.settings_file}: expected in [train] how its model was trained, got "
                f"{'nothing' if settings.train is None else 'that of another kind of model'}; bring it back, "
                "or make the run again"
            )

    def _is_as_written(self, path: Path) -> bool:
        """Return whether a file is as the manifest says."""
        try:
            self.manifest.check(path)
        except (InputError, OSError):
            return False
        return True

    def check_unchanged(self, settings: RunSettings) -> None:
        """Raise InputError if the run that was just read has been replaced meanwhile."""
        if RunSettings.read(self.settings_file) != settings:
            raise InputError(f"{self.path}: was written anew while it was read; try again")

    def write_settings(self, settings: RunSettings) -> None:
        """Write settings.toml, unless it says that already."""
        from heedmap.files.identity import settings_hash

        text, made_with = settings.to_toml(), settings_hash(settings)

        def note(listing: Listing) -> None:
            listing.settings = made_with

        if self.manifest.load().settings != made_with:
            self.manifest.change(note)
        elif self.is_begun() and self._is_as_written(self.settings_file):
            with suppress(OSError):
                if read_bytes(self.settings_file) == encoded(text):
                    return
        self.manifest.write(self.settings_file, text)

    def require_manifest(self) -> None:
        """Raise InputError unless a manifest says which files heedmap wrote."""
        if not self.manifest.exists:
            raise InputError(
                f"{self.path}: has no {MANIFEST} that lists what heedmap wrote there, so nothing is read or "
                "removed; bring it back, delete the folder yourself, or choose another --out"
            )

    def refuse_other_files(self) -> None:
        """Raise InputError unless the manifest lists everything that is where a run's files go."""
        self.require_manifest()
        self.manifest.refuse_taken(RUN_FILES, whole=("model",))

    # The life of a run

    def begin(self, settings: RunSettings, *, resume: bool) -> None:
        """Prepare the folder for a training: to `resume`, the checkpoint stays, and what was recorded."""
        self.clear((SETTINGS, CHECKPOINT, DYNAMICS) if resume else (SETTINGS,))
        self.manifest.start()
        self.write_settings(settings)

    def clear(self, keep: Collection[str] = ()) -> None:
        """Remove only what the manifest lists, except the files in `keep`.

        Raises:
            InputError: a run without a manifest, or other files among its own.
        """
        if self.is_begun():
            self.refuse_other_files()
            listed = self.manifest.load().files
            tops = dict.fromkeys(name.split("/")[0] for name in listed)
            folders = [name for name in tops if (self.path / name).is_dir()]
            self.manifest.remove(
                *(name for name in tops if name not in RUN_FILES), *RUN_FILES, keep=keep
            )
            unlisted = self.manifest.others([name for name in folders if name not in keep])
            if unlisted:
                remark(
                    f"{self.path}: left alone, for heedmap did not write them: {some_of(unlisted)}"
                )
        for path in leftovers(self.path, RUN_FILES):
            remove(path)
        if not keep:
            remove(self.manifest.path)

    def tidy(self) -> None:
        """Remove what killed processes left in a finished run's folder."""
        self.manifest.remove(CHECKPOINT)
        self.manifest.settle()
        for path in leftovers(self.path, (*RUN_FILES, MANIFEST)):
            remove(path)

    # Texts

    def keep_texts(self, in_memory: "InMemory | None") -> None:
        """Write the texts of a run that came from memory, unless the folder has them."""
        if in_memory is None:
            return
        files = in_memory.files()
        if {path.name: path.read_bytes() for path in self.texts.glob("*.jsonl")} != files:
            for name, content in files.items():
                self.manifest.write(self.texts / name, content)
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
