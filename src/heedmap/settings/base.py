"""What all settings are made of: validated, frozen values, whose fields are options with their help."""

from typing import Annotated, Any, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError
from pydantic.fields import FieldInfo

from heedmap.errors import InputError, expected

# May change on resume, for example after running out of memory. Random numbers do not depend on the batch, so
# results differ by rounding only: in the last digits of a float32, in a rank between close values, and rarely
# in the path of a search (none of 20 texts of MiniLM, one of 42 of tiny models, by .008 nats). Each table
# records the value it was made with, and `about` in findings.json lists them all.
FREE = ("model.batch_tokens",)
# The bounds exclude sizes that fit in no memory; an integer in TOML has 64 bits.
Positive = Annotated[int, Field(ge=1, le=2**31 - 1)]
Size = Annotated[int, Field(ge=1, le=65_536)]  # of vectors
Seed = Annotated[int, Field(ge=0, le=2**63 - 1)]


def option(
    help: str,
    default: Any = ...,
    *,
    shown: str | None = None,
    also: str | None = None,
    several: bool = False,
) -> Any:
    """Make a field that is an option of commands and a keyword of functions, by the field's name.

    Args:
        help: its text in a command's help, without the default.
        default: the value if the option is not given.
        shown: the default in words, where it depends on the data or the model.
        also: another name of the command's option.
        several: whether the command's option may be given several times.
    """
    extra: dict[str, Any] = {"shown": shown, "also": also, "several": several}
    return Field(default, description=help, json_schema_extra=extra)


class Settings(BaseModel):
    """Validated, frozen values; unknown names are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    @classmethod
    def options(cls) -> dict[str, FieldInfo]:
        """Return the fields that users can set."""
        return {name: field for name, field in cls.model_fields.items() if field.description}

    @classmethod
    def of(cls, **values: Any) -> Self:
        """Make validated settings.

        Raises:
            InputError: names the first invalid value and what was expected.
        """
        try:
            return cls.model_validate(values)
        except ValidationError as error:
            problem = error.errors()[0]
            name = ".".join(str(part) for part in problem["loc"]) or cls.__name__
            if problem["type"] == "extra_forbidden" and name in values:
                names = ", ".join(cls.model_fields)
                raise InputError(
                    f"{name} = {values[name]!r}: expected one of the names {names}"
                ) from error
            clause, value = expected(error)
            raise InputError(f"{name} = {value!r}: {clause}") from error

    def flat(self) -> dict[str, Any]:
        """Return all settings by name, those of a part as `part.name`, as values of JSON."""
        return _flat(self.model_dump(mode="json"))

    def difference(self, settings: Self) -> list[str]:
        """Return `name: mine -> other's` for every setting that differs."""
        mine, theirs = self.flat(), settings.flat()
        names = sorted(mine.keys() | theirs.keys())
        return [
            f"{name}: {mine.get(name)!r} -> {theirs.get(name)!r}"
            for name in names
            if mine.get(name) != theirs.get(name) and name not in FREE
        ]


class OptionSubset:
    """The options of a settings class, without those that a command or a function does not have."""

    def __init__(self, settings: type[Settings], *without: str) -> None:
        self.settings, self._without = settings, without

    def options(self) -> dict[str, FieldInfo]:
        """Return the remaining fields."""
        return {n: field for n, field in self.settings.options().items() if n not in self._without}


def _flat(values: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in values.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{prefix}{key}.")
        else:
            flat[prefix + key] = value
    return flat
