"""A run's settings as a whole, as in its settings.toml."""

import tomllib
from pathlib import Path
from typing import Literal

import tomli_w

from heedmap.errors import InputError
from heedmap.nouns import TEXTS, Nouns
from heedmap.settings.audit import AuditSettings
from heedmap.settings.base import Settings
from heedmap.settings.data import DataSettings
from heedmap.settings.models import AnyModelSettings, ModelSettings
from heedmap.settings.retraining import GuideSettings
from heedmap.settings.training import FineTuneSettings, TrainSettings


class RunSettings(Settings):
    """One run: data, model, training, and the audit if there is one.

    `variant` names a model that another training than `train` alone made, such as an adversary. `guide` is
    what one reads with that has learned no weights. `parent` is the folder of the run that it was trained for,
    also of another seed or a uniform twin, which are no `variant`: `train` says all of them. As a place it is
    no part of what the run is.
    """

    version: Literal[1] = 1
    fingerprint: str
    data: DataSettings
    model: AnyModelSettings
    train: TrainSettings | FineTuneSettings | None = None
    audit: AuditSettings | None = None
    variant: str | None = None
    guide: GuideSettings | None = None
    parent: str | None = None

    @property
    def nouns(self) -> Nouns:
        """Return what the run's instances and their items are called."""
        return self.data.nouns or TEXTS

    @property
    def is_uniform(self) -> bool:
        """Whether the model was trained with the same weight for all words, and no other."""
        is_own = isinstance(self.model, ModelSettings) and self.guide is None
        return is_own and getattr(self.model, "score", "") == "uniform"

    def to_toml(self) -> str:
        """Return the text of settings.toml, without values that are None."""
        return tomli_w.dumps(self.model_dump(exclude_none=True, mode="json"))

    @classmethod
    def read(cls, path: Path) -> "RunSettings":
        """Read settings from a file.

        Raises:
            InputError: the file is unreadable, not of a run or of another version, or has an invalid key or
                value.
        """
        try:
            if path.exists() and not path.is_file():  # a pipe would be waited for
                raise OSError("not a regular file")
            values = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError) as error:
            message = str(error).splitlines()[0]
            raise InputError(f"{path}: cannot be read as settings ({message})") from error
        if not isinstance(values.get("version"), int):
            raise InputError(
                f"{path}: expected the settings of a run, found a file of another program, or an emptied one; "
                "name a run's folder, or bring the file back"
            )
        if values["version"] != 1:
            raise InputError(
                f"{path}: written by another version (format {values['version']}, expected 1); "
                "make the run again from its data, with --overwrite"
            )
        try:
            return cls.of(**values)
        except InputError as error:
            raise InputError(f"{path}: {error}") from error
