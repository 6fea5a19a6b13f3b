"""The path of a comparison's page, without slow imports: a wrong name is refused at once."""

from pathlib import Path

from heedmap.errors import InputError


def page_path(path: str | Path) -> Path:
    """Return the path of a page.

    Raises:
        InputError: it does not end in .html.
    """
    path = Path(path).expanduser()
    if path.suffix not in (".html", ".htm"):
        raise InputError(f"{path}: expected a name that ends in .html; give the page such a name")
    return path
