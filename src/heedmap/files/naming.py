"""What names a model or texts: a path, or a string that may be a name on the Hugging Face Hub.

Nothing else is ever turned into a name: the words of a list are a user's texts, and would leave the machine.
"""

import os
from pathlib import Path

from heedmap.errors import InputError

MODEL = "a model's folder or its name on the Hub"
DATA = "a file, a folder or a name on the Hub as data"
_REMEDIES = {
    MODEL: "save it with `save_pretrained` and give the folder",
    DATA: "write the texts and labels to a CSV, JSONL or Parquet file and give its path",
}


def name_of(value: object, what: str) -> str:
    """The string that stands for a source in the settings. A path that leads nowhere is made absolute: only a
    string is ever looked up on the Hub.

    Args:
        value: what a user gave.
        what: was expected, MODEL or DATA.

    Raises:
        TypeError: neither a string nor a path.
    """
    name = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(name, str):
        raise TypeError(f"expected {what}, got {kind_of(value)}; {_REMEDIES[what]}")
    return str(name) if isinstance(value, str) or is_there(name) else str(Path(name).absolute())


def is_there(name: str) -> bool:
    """Whether there is a file or a folder of that name, whatever the string is."""
    try:
        return Path(name).expanduser().exists()
    except (OSError, RuntimeError):  # longer than a name can be; a home that nobody has
        return False


def check_name(name: str, what: str) -> None:
    """Let pass what could be a name on the Hub: `name` or `owner/name`, of up to 96 characters that it allows.

    Raises:
        InputError: it could not; nothing is looked up.
    """
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]  # public by its docs

    try:
        validate_repo_id(name)
    except HFValidationError as error:
        raise InputError(
            f"expected {what}, got {name!r:.60}; there is no such file or folder, and it cannot be a name on "
            "the Hub (NAME or OWNER/NAME of letters, digits, '-', '_' and '.'); check it"
        ) from error


def kind_of(value: object) -> str:
    """A value's type, as a refusal names it."""
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
