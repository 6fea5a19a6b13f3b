"""Find the grid's data sets: at a path, under data/, generated, or on the Hub."""

from collections.abc import Mapping
from pathlib import Path

from heedmap.data.catalog import CATALOG
from heedmap.data.embedded import EMBEDDED, STORIES
from heedmap.data.readers import split_files
from heedmap.data.streams import reading
from heedmap.errors import InputError
from heedmap.papers.jain_wallace.settings import RECIPES

DATASETS = {name: CATALOG[name] for name in RECIPES}
"""The paper's, of the catalog."""
DATA = Path("data")
CLINICAL = ("diabetes", "anemia")


def locate(name: str, data: Path | None, hub: bool = False) -> str | None:
    """Return where a data set can be read from; None if it is not available.

    `data` is the data set itself, or a folder with one folder for each; the default is `data/NAME`.
    bAbI is generated if there are no files of it; the Hub is used only with `hub`.
    """
    if name not in DATASETS:
        raise InputError(f"{name}: expected one of {', '.join(DATASETS)}")
    with reading(data or DATA):
        for place in (data / name, data) if data else (DATA / name,):
            if place.exists() and not (place == data and _holds_others(place)):
                return str(place)
    if name in EMBEDDED:
        return name
    return DATASETS[name].hub if hub else None


def needed(name: str, data: Path | None, hub: bool = False) -> str:
    """Return where a data set can be read from (see `locate`), or raise.

    Raises:
        InputError: it is not available; the message says what to download, and in which layout.
    """
    with reading(data or DATA):
        if data is not None and not data.exists():
            raise InputError(
                f"{data}: no such file or folder; expected {name}, or a folder with one for each"
            )
    if (place := locate(name, data, hub)) is not None:
        return place
    dataset = DATASETS[name]
    hub_hint = f", or --hub to read {dataset.hub} from the Hugging Face Hub" if dataset.hub else ""
    looked = data / name if data else DATA / name
    raise InputError(
        f"{name}: not at hand (looked at {looked}); it needs {dataset.needs}; give --data{hub_hint}"
    )


def check_apart(sources: Mapping[str, str]) -> None:
    """Check that data sets have different places, except those that share files.

    Raises:
        InputError: one place is given for several data sets.
    """
    for place in dict.fromkeys(sources.values()):
        names = [name for name, source in sources.items() if source == place]
        if len(names) == 1 or set(names) <= set(CLINICAL):
            continue
        if set(names) <= set(STORIES) and Path(place).is_dir() and not split_files(Path(place)):
            continue  # the official folder holds all tasks
        raise InputError(
            f"{place}: cannot be {' and '.join(names)} at once; give a folder with one folder for each"
        )


def is_own(data: Path | None) -> bool:
    """Return whether a place without a data set's name is a user's own data: a file, split files, a corpus."""
    if data is None:
        return False
    if str(data) in EMBEDDED:
        return True
    with reading(data):
        return data.is_file() or (
            data.is_dir() and not _holds_others(data) and bool(split_files(data))
        )


def title_of(name: str) -> str:
    """Return what a data set is called in the result: a user's own data by their name."""
    return DATASETS[name].title if name in DATASETS else name


def listing(data: Path | None) -> list[tuple[str, str, str, str]]:
    """Return name, title, place (or that there is none) and needs of every data set."""
    lines = []
    for name, dataset in DATASETS.items():
        place = locate(name, data)
        shown_place = (
            "generated"
            if place in EMBEDDED
            else place or ("with --hub" if dataset.hub else "not at hand")
        )
        lines.append((name, dataset.title, shown_place, dataset.needs))
    return lines


def _holds_others(folder: Path) -> bool:
    return any((folder / name).is_dir() for name in DATASETS)
