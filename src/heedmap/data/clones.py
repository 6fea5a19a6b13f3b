"""A folder that is a clone of a data set on the Hub, read without the Hub and without leaving the folder.

Splits are found as on the Hub: the README's `configs` name their files, or else the names of folders and files
do (`data/train-00000-of-00001.parquet`). What the README names must lie in the folder.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import accumulate
from pathlib import Path, PurePosixPath
from typing import Any

from heedmap.data.columns import Rows
from heedmap.data.file_kinds import kind_of
from heedmap.data.readers import read_rows
from heedmap.data.streams import first_line
from heedmap.errors import InputError
from heedmap.terminal.output import some_of

ABOUT = (
    "config.json",
    "dataset_dict.json",
    "dataset_info.json",
    "dataset_infos.json",
    "state.json",
)
"""Files that say something about a data set."""
_KEYWORDS = {
    "train": ("train", "training"),
    "validation": ("validation", "valid", "dev", "val"),
    "test": ("test", "testing", "eval", "evaluation"),
}
DEEPEST = 3  # data/en/train.parquet; files further down belong to something else
_KNOWN = {"config_name", "data_dir", "data_files", "default", "description", "features", "version"}


def read_clone(folder: Path, read_file: Callable[[Path], Rows] = read_rows) -> dict[str, Rows]:
    """Read the rows by split, as the Hub names them, each file by `read`; none where no file looks like data.

    Raises:
        InputError: a README that cannot be followed, or that names what is not in the folder; several
            configurations, or, where no README names the files, several folders that hold files of one split;
            files of one split with different columns.
    """
    metadata = _metadata(folder)
    config = _config(folder, metadata)
    if config.get("data_files") is not None:
        by_split = _by_pattern(folder, config)
    else:
        home = _inside(folder, config["data_dir"]) if config.get("data_dir") else folder
        by_split = _by_name(home, _data(_below(home), home))
        if home == folder and not any(len(p.relative_to(folder).parts) > 1 for p in _all(by_split)):
            by_split = {}  # files of the folder itself are named train, dev and test
        _check_one_set(home, by_split)
    for path in _all(by_split):
        confine(folder, path)
    names = _class_names(metadata, config)
    guessed = config.get("data_files") is None
    return {
        split: _joined(
            folder, split, paths, names, read_file, _several(folder, paths) if guessed else []
        )
        for split, paths in by_split.items()
    }


def confine(folder: Path, path: Path) -> None:
    """Refuse a file that a folder's own list names, but that lies elsewhere once links are followed.

    The Hub's cache keeps the files of `snapshots/REVISION` in `blobs` beside it: those are its own.

    Raises:
        InputError: naming both.
    """
    real, home = path.resolve(), folder.resolve()
    cache = home.parent.parent / "blobs" if home.parent.name == "snapshots" else None
    if not real.is_relative_to(home) and real.parent != cache:
        raise InputError(f"{folder}: expected files inside the folder, got {path}, which is {real}")


def plain(folder: Path, name: object) -> PurePosixPath:
    """Check a name in a folder's own list and return it as a path below the folder.

    Raises:
        InputError: an absolute path, an address, or one with `..` in it.
    """
    path = PurePosixPath(name) if isinstance(name, str) else PurePosixPath("/")
    if (
        not path.parts
        or path.is_absolute()
        or ".." in path.parts
        or re.search(r"::|:/|\\|^~", str(name))
    ):
        raise InputError(f"{folder}: expected names of files inside the folder, got {name!r:.80}")
    return path


def _all(by_split: Mapping[str, list[Path]]) -> list[Path]:
    return [path for paths in by_split.values() for path in paths]


def _metadata(folder: Path) -> dict[str, Any]:
    readme = folder / "README.md"
    if not readme.is_file():
        return {}
    from huggingface_hub import metadata_load

    try:
        return metadata_load(readme) or {}
    except Exception as error:  # YAML has many ways to be broken
        raise InputError(
            f"{readme}: expected YAML between its first two lines of ---, got something else "
            f"({first_line(error)}); mend it or take it out"
        ) from error


def _config(folder: Path, metadata: Mapping[str, Any]) -> dict[str, Any]:
    """Choose the only configuration, or the one that is called or marked the default."""
    configs = metadata.get("configs") or []
    if not isinstance(configs, list) or not all(isinstance(config, dict) for config in configs):
        raise InputError(f"{folder}/README.md: expected a list of configurations as `configs`")
    default = [c for c in configs if c.get("config_name") == "default" or c.get("default")]
    chosen_configs = configs if len(configs) == 1 else default
    if configs and len(chosen_configs) != 1:
        names = ", ".join(str(config.get("config_name")) for config in configs[:8])
        raise InputError(
            f"{folder}: expected a data set of one configuration, got {len(configs)} ({names}); give the "
            "file or folder of one of them"
        )
    config = dict(chosen_configs[0]) if chosen_configs else {}
    if unknown := config.keys() - _KNOWN:
        raise InputError(
            f"{folder}/README.md: expected a configuration with data_files, got {', '.join(sorted(unknown))} "
            "besides, which heedmap does not follow; save the splits as train.csv, dev.csv and test.csv"
        )
    return config


def _inside(folder: Path, name: object) -> Path:
    return folder / plain(folder, name)


def _by_pattern(folder: Path, config: Mapping[str, Any]) -> dict[str, list[Path]]:
    """Find the files that the README's patterns match, by split."""
    data_files, base = config["data_files"], folder
    if config.get("data_dir"):
        base = _inside(folder, config["data_dir"])
    entries = data_files if isinstance(data_files, list) else [data_files]
    if all(isinstance(entry, str) for entry in entries):
        entries = [{"split": "train", "path": entries}]
    by_split: dict[str, list[Path]] = {}
    for entry in entries:
        if not isinstance(entry, dict) or not {"split", "path"} <= entry.keys():
            raise InputError(
                f"{folder}/README.md: expected data_files with split and path, got {entry!r:.80}"
            )
        patterns = entry["path"] if isinstance(entry["path"], list) else [entry["path"]]
        paths: list[Path] = []
        for pattern in patterns:
            glob = str(plain(folder, pattern))
            glob = f"{glob}/*" if glob.endswith("**") else glob
            matching = _data(base.glob(glob), base)
            if not matching:
                raise InputError(
                    f"{folder}/README.md: expected data_files that are there, found no CSV, JSON or "
                    f"Parquet file for {pattern!r:.80}"
                )
            paths += [path for path in matching if path not in paths]
        by_split[str(entry["split"])] = paths
    return by_split


def _below(folder: Path) -> Iterator[Path]:
    """List what is in a folder, up to DEEPEST folders down, but not in runs of heedmap."""
    level = [folder] if folder.is_dir() else []
    for _ in range(DEEPEST):
        children = [path for parent in level for path in sorted(parent.iterdir())]
        yield from children
        folders = (path for path in children if path.is_dir() and not path.is_symlink())
        level = [path for path in folders if not (path / "settings.toml").exists()]


def _data(paths: Iterable[Path], base: Path) -> list[Path]:
    """Keep the files that may be data, of the most common kind, sorted."""
    files = sorted(
        path
        for path in paths
        if kind_of(path)
        and path.name not in ABOUT
        and not any(part.startswith((".", "__")) for part in path.relative_to(base).parts)
        and path.is_file()
    )
    kinds = Counter(kind_of(path) for path in files).most_common(1)
    return [path for path in files if kind_of(path) == kinds[0][0]]


def _by_name(base: Path, paths: list[Path]) -> dict[str, list[Path]]:
    """Sort files into splits by words in the names of folders, else of files; else all are for training."""
    for places in (lambda path: path.relative_to(base).parts[:-1], lambda path: [path.name]):
        by_split: dict[str, list[Path]] = {}
        for path in paths:
            names = {word for part in places(path) for word in _words(part)}
            for split, keywords in _KEYWORDS.items():
                if names.intersection(keywords):
                    by_split.setdefault(split, []).append(path)
        if by_split:
            return by_split
    return {"train": paths} if paths else {}


def _words(name: str) -> list[str]:
    return re.split(r"[-._ 0-9]+", name.lower())


def _check_one_set(base: Path, by_split: Mapping[str, list[Path]]) -> None:
    """Refuse files of one split in several folders: a folder of data sets, or of one and its copy."""
    for split, paths in by_split.items():
        homes = list(dict.fromkeys(_home(path, base, split) for path in paths))
        if len(homes) > 1:
            raise InputError(
                f"{base}: expected one data set, got files of the split {split} in {len(homes)} folders "
                f"({some_of(homes)}); give the folder of one of them, such as {homes[0]}"
            )


def _several(folder: Path, paths: Sequence[Path]) -> list[str]:
    """Note the files that their names alone make one split."""
    names = [path.relative_to(folder).as_posix() for path in paths]
    return [f"{len(names)} files are read as one split: {some_of(names)}"] if len(names) > 1 else []


def _home(path: Path, base: Path, split: str) -> Path:
    """Return the folder in which a data set has a file: that of the folder named as its split, or its own."""
    for folder in reversed(path.relative_to(base).parents[:-1]):
        if set(_words(folder.name)).intersection(_KEYWORDS[split]):
            return base / folder.parent
    return path.parent


def _joined(
    folder: Path,
    split: str,
    paths: list[Path],
    names: Mapping[str, list[str]],
    read_file: Callable[[Path], Rows],
    notes: Iterable[str],
) -> Rows:
    parts: list[Rows] = []
    for path in paths:
        parts.append(read_file(path))
        columns, file_columns = parts[0].columns, parts[-1].columns
        if set(columns) != set(file_columns):
            raise InputError(
                f"{folder}: expected the same columns in all files of {split}, got "
                f"{', '.join(columns[:8])} in {paths[0].name} and {', '.join(file_columns[:8])} in {path.name}"
            )
    named = [(path.relative_to(folder), part) for path, part in zip(paths, parts, strict=True)]
    ends = [*accumulate(map(len, parts))]

    def place_of(i: int) -> str:
        number = bisect_right(ends, i)
        return parts[number].place_of(i - ends[number] + len(parts[number]))

    return Rows(
        columns,
        ends[-1],
        lambda column: [value for part in parts for value in part.values(column)],
        {**names, **parts[0].class_names},
        place_of,
        notes=[*notes, *(f"{name}: {note}" for name, part in named for note in part.notes)],
        unless_joined={
            f"{name}: {note}": columns
            for name, part in named
            for note, columns in part.unless_joined.items()
        },
    )


def _class_names(metadata: Mapping[str, Any], config: Mapping[str, Any]) -> dict[str, list[str]]:
    """Find what the numbers of a column mean, where the README says so."""
    infos = metadata.get("dataset_info") or []
    infos = infos if isinstance(infos, list) else [infos]
    config_name = config.get("config_name", "default")
    names: dict[str, list[str]] = {}
    for info in (*infos, {**config, "config_name": config_name}):
        if not isinstance(info, dict) or (
            len(infos) > 1 and info.get("config_name", "default") != config_name
        ):
            continue
        features = info.get("features")
        for feature in features if isinstance(features, list) else []:
            dtype = feature.get("dtype") if isinstance(feature, dict) else None
            label = dtype.get("class_label") if isinstance(dtype, dict) else None
            label_names = label.get("names") if isinstance(label, dict) else None
            if isinstance(label_names, dict):  # by number
                numbers = range(len(label_names))
                label_names = [label_names.get(str(i), label_names.get(i)) for i in numbers]
            if isinstance(label_names, list) and None not in label_names:
                names[str(feature.get("name"))] = [str(name) for name in label_names]
    return names
