"""The run folder: `RunFolder` alone reads and writes the files of a run.

    runs/sst/
      settings.toml  vocabulary.json  model.safetensors  training.json
      tables/*.parquet   tables/about.json   tables/manifest.json   findings.json   report.html
      extra/             what others keep of this model, removed with it

Every file is written whole or not at all, and everything after the tables is a function of the tables.
During training there is checkpoint.safetensors instead of the model; a transformer's is the folder model/.
One process at a time writes in a folder (`RunFolder.locked`). The settings are written first and removed
last: whatever a killed process leaves, it is known which run it belongs to.
"""

import json
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from heedmap.errors import InputError
from heedmap.files.storage import leftovers, refuse_file, remove, write_atomically
from heedmap.runs.comparison import differences, relocated
from heedmap.runs.places import Out, is_free, reserve_folder
from heedmap.settings import RunSettings, TransformerSettings

if TYPE_CHECKING:
    from collections.abc import Mapping

    from torch import Tensor

    from heedmap.training.fit import Trained

CHECKPOINT = "checkpoint.safetensors"
SETTINGS = "settings.toml"
# In the order in which they are removed: first what says that a run is finished, last whose it is.
OWN = (
    "model.safetensors",
    "model",
    "report.html",
    "findings.json",
    "tables",
    "extra",
    "training.json",
    "vocabulary.json",
    CHECKPOINT,
    SETTINGS,
)
R = TypeVar("R")


class RunFolder:
    """The folder of one run.

    `checkpoint` is the file of a training that is not finished, `model` the folder of a transformer that was
    fine-tuned here, `tables` the folder of the audit's tables, `extra` one for whoever builds on runs.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = Path(path)
        self.checkpoint = self.path / CHECKPOINT
        self.model = self.path / "model"
        self.tables = self.path / "tables"
        self.extra = self.path / "extra"
        self.report = self.path / "report.html"
        self._settings = self.path / SETTINGS
        self._weights = self.path / "model.safetensors"
        self._vocabulary = self.path / "vocabulary.json"
        self._training = self.path / "training.json"
        self._findings = self.path / "findings.json"

    @classmethod
    @contextmanager
    def locked(cls, out: Out, settings: RunSettings) -> "Iterator[RunFolder]":
        """The folder for a run, locked for writing (see `places.reserve_folder`)."""

        def is_this_run(path: Path) -> bool:
            try:
                return not differences(RunSettings.read(path / SETTINGS), settings)
            except InputError:
                return False

        with reserve_folder(out, is_this_run, OWN) as path:
            yield cls(path)

    # Which run it holds

    def settings(self) -> RunSettings:
        """The settings of the run.

        Raises:
            InputError: no run there, or its settings cannot be read.
        """
        if not self.is_begun():
            raise InputError(
                f"{self.path}: no run there (no settings.toml); `heedmap list` shows the runs"
            )
        return RunSettings.read(self._settings)

    def is_begun(self) -> bool:
        """Whether a run is there, finished or not."""
        return self._settings.exists()

    def check_unchanged(self, settings: RunSettings) -> None:
        """Raises InputError where the run that was just read has been replaced meanwhile."""
        if self.settings() != settings:
            raise InputError(f"{self.path}: was written anew while it was read; try again")

    def write_settings(self, settings: RunSettings) -> None:
        """Write settings.toml."""
        write_atomically(self._settings, settings.to_toml())

    def holds_another(self, settings: RunSettings, overwrite: bool) -> bool:
        """Whether another run is there, which is to be cleared first: only where `overwrite`. Writes nothing.

        Raises:
            InputError: another run and no `overwrite` (the differences are named), or something that is no
                run, or what the new run is to be made of.
        """
        refuse_file(self.path)
        if not self.is_begun():
            if not is_free(self.path, OWN):
                raise InputError(
                    f"{self.path}: holds files that are not a run's; choose another --out"
                )
            return False
        if overwrite:
            self._refuse_own(settings)
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
                "or insist with --overwrite"
            )
        return bool(changed)

    def _refuse_own(self, settings: RunSettings) -> None:
        """Raises InputError where a run is to be made of what it would delete."""
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
        """The run with these settings, if it is there and trained to the end.

        The same texts and vectors may be read from another place than before: the settings then name it.

        Raises:
            InputError: as `holds_another`; or the run is damaged, and not to be overwritten.
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
        """Let the settings of a finished run name the places of `settings`, if they are others."""
        found = RunSettings.read(self._settings)
        if (moved := relocated(found, settings)) != found:
            self.write_settings(moved)

    def begin(self, settings: RunSettings, *, resume: bool) -> None:
        """Make the folder ready for a training: nothing is left but, to `resume` one, its checkpoint."""
        self.clear((SETTINGS, CHECKPOINT) if resume else (SETTINGS,))
        self.write_settings(settings)

    def clear(self, keep: Collection[str] = ()) -> None:
        """Remove what a run wrote, and nothing else; not the files in `keep`."""
        for name in OWN:
            if name not in keep:
                remove(self.path / name)
        for path in leftovers(self.path, OWN):
            remove(path)

    def tidy(self) -> None:
        """Remove what killed processes left beside a finished run."""
        for path in (*leftovers(self.path, OWN), *leftovers(self.tables), self.checkpoint):
            remove(path)

    # Its model

    def is_trained(self, settings: RunSettings) -> bool:
        """Whether the model is there: it is written last."""
        transformer = isinstance(settings.model, TransformerSettings)
        return (self.model if transformer else self._weights).exists()

    def write_training(self, trained: "Trained", identity: str) -> None:
        """Keep the scores of a training that gave a model of this identity."""
        content = {**asdict(trained), "identity": identity}
        write_atomically(self._training, json.dumps(content, indent=1))

    def training(self) -> "tuple[Trained, str | None]":
        """The scores of the training, and its model's identity: None in runs from before it was kept.

        Raises:
            InputError: nothing there, or damaged.
        """
        from pydantic import TypeAdapter

        from heedmap.training.fit import Trained

        try:
            about = json.loads(self._training.read_text(encoding="utf-8"))
            trained = TypeAdapter(Trained).validate_python(about)
            known = about.get("identity")
            if not 0 <= trained.best_epoch < len(trained.scores) or not isinstance(
                known, str | None
            ):
                raise ValueError("not what a training writes")
        except (OSError, ValueError, RecursionError) as error:
            raise InputError(
                f"{self._training}: damaged ({type(error).__name__}); make the run again with the command that "
                "made it and --overwrite"
            ) from error
        return trained, known

    def write_model(
        self, words: list[str], classes: list[str], tensors: "Mapping[str, Tensor]"
    ) -> None:
        """Write words, classes and weights of an attention model; the weights last: they say it is done."""
        from safetensors.torch import save

        known = {"classes": classes, "words": words}
        write_atomically(self._vocabulary, json.dumps(known, ensure_ascii=False))
        write_atomically(
            self._weights, save({k: v.detach().contiguous() for k, v in tensors.items()})
        )

    def read_model(self) -> "tuple[list[str], list[str], dict[str, Tensor]]":
        """Words, classes and weights of an attention model that was trained here.

        Raises:
            InputError: it is damaged.
        """
        from safetensors import SafetensorError
        from safetensors.torch import load

        try:
            known = json.loads(self._vocabulary.read_text(encoding="utf-8"))
            words, classes = known["words"], known["classes"]
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
        """What to tell the user of a model that cannot be read."""
        said = (str(error).splitlines() or [""])[0]
        return InputError(
            f"{self.path}: the run is damaged ({type(error).__name__}: {said}); make it again with the command "
            "that made it and --overwrite"
        )

    # Its report

    def write_conclusions(self, findings: str, report: str) -> None:
        """Write findings.json and report.html."""
        write_atomically(self._findings, findings)
        write_atomically(self.report, report)

    def remove_conclusions(self) -> None:
        """Remove them, before the tables that they are made from."""
        for path in (self.report, self._findings):
            path.unlink(missing_ok=True)
