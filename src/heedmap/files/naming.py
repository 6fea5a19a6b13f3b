"""Names of models and texts (a path, or a string that may be a name on the Hugging Face Hub), and of pages.

Nothing else is turned into a name: a list, say, may hold a user's texts, which must not leave the machine.
"""

import os
from pathlib import Path

from heedmap.errors import InputError

MODEL = "a model's folder or its name on the Hub"
DATA = "a file, a folder or a name on the Hub as data"
_REMEDIES = {
    MODEL: "save it with `save_pretrained` and give the folder",
    DATA: "or give a pandas DataFrame, a datasets.Dataset or DatasetDict, records (a list of dicts), or a list "
    "of texts with labels=[...]",
}


def name_of(value: object, expected: str) -> str:
    """Return a source's name for the settings, from which nobody takes a path for a name on the Hub.

    A folder whose path could be such a name gets `./` before it, so that nothing is looked up once it has
    moved. A missing path is made absolute: only strings are looked up on the Hub.

    Args:
        value: the user's argument.
        expected: what is expected, MODEL or DATA.

    Raises:
        TypeError: the value is neither a string nor a path.
    """
    name = os.fspath(value) if isinstance(value, str | os.PathLike) else None
    if not isinstance(name, str):
        raise TypeError(f"expected {expected}, got {kind_of(value)}; {_REMEDIES[expected]}")
    if not is_there(name):
        return str(name) if isinstance(value, str) else str(Path(name).absolute())
    return name if is_path(name) or Path(name).is_file() else f"./{name}"


def is_path(name: str) -> bool:
    """Return whether a source can only be a path, by its name: the Hub's are NAME or OWNER/NAME."""
    return name.isprintable() and (name.startswith((".", "/", "~")) or name.count("/") > 1)


def is_there(name: str) -> bool:
    """Return whether a file or folder of that name exists; False for strings that cannot be paths."""
    try:
        return Path(name).expanduser().exists()
    except (OSError, RuntimeError):  # too long a name; an unknown user's home
        return False


def found_from(folder: Path, name: str) -> str:
    """Return where a relative path leads that a file in a folder names: from here, or from a folder above it.

    A run names its model as the user did, by a path from the directory where it was made, which is above the
    run's folder unless it was put elsewhere. A name that leads nowhere is returned as it is.
    """
    path = Path(name).expanduser()
    if path.is_absolute() or is_there(name):
        return name
    parents = (parent / path for parent in folder.absolute().parents)
    return next((str(place) for place in parents if is_there(str(place))), name)


def holds_model(folder: Path) -> bool:
    """Return whether a folder holds a model as transformers saves it, or an adapter as peft does."""
    return any((folder / name).exists() for name in ("config.json", "adapter_config.json"))


def check_name(name: str, expected: str) -> None:
    """Check that a name is valid on the Hub: `name` or `owner/name`, up to 96 characters. No network access.

    Raises:
        InputError: the name is invalid.
    """
    from huggingface_hub.errors import HFValidationError
    from huggingface_hub.utils import validate_repo_id  # type: ignore[attr-defined]  # public by its docs

    try:
        validate_repo_id(name)
    except HFValidationError as error:
        raise InputError(
            f"expected {expected}, got {name!r:.60}; there is no such file or folder, and it cannot be a name "
            "on the Hub (NAME or OWNER/NAME of letters, digits, '-', '_' and '.'); check it"
        ) from error


def page_path(path: str | Path, remedy: str = "give the page such a name") -> Path:
    """Return the path of a page.

    Raises:
        InputError: it does not end in .html; the line ends with the remedy.
    """
    path = Path(path).expanduser()
    if path.suffix not in (".html", ".htm"):
        raise InputError(f"{path}: expected a name that ends in .html; {remedy}")
    return path


def kind_of(value: object) -> str:
    """Return the name of a value's type for error messages."""
    kind = type(value)
    return kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
