"""A folder of bags of vectors with a table of their labels, or one Parquet file of bags with a row per item.

bags/labels.csv          slide_id,label (and split, if the bags have one)
bags/slide_1.h5 ...      features (items, numbers), coords (items, 2); or .npy, .safetensors
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from heedmap.data.bag_files import SUFFIXES, BagFile, bag_paths
from heedmap.data.bag_parquet import BAG_COLUMNS, ParquetBags, is_vector
from heedmap.data.columns import Rows, Tables
from heedmap.data.file_kinds import kind_of
from heedmap.data.item_vectors import ItemVectors, StoredBag, common_width
from heedmap.data.padding import without_padding
from heedmap.data.readers import SPLIT_NAMES, split_files
from heedmap.data.rows import LABEL_COLUMNS, ColumnSpec, LabelledTexts, Row
from heedmap.errors import InputError
from heedmap.terminal.output import quoted, some_of

ID_COLUMNS = (*BAG_COLUMNS, "id", "name", "file")
LABELS = "labels.csv"
FOLD = "splits_0.csv"  # the first of CLAM's


def is_bags(path: Path) -> bool:
    """Return whether a path is a folder with files of bags, or a Parquet file of items."""
    try:
        return _holds_bags(path)
    except OSError:  # said by what reads it
        return False


def _holds_bags(path: Path) -> bool:
    if path.suffix == ".parquet" and path.is_file():
        return _is_parquet_of_items(path)
    if not path.is_dir():
        return False
    suffixes = {p.suffix for p in path.iterdir()}
    return bool(
        suffixes & {*SUFFIXES}
        or (".pt" in suffixes and _tables_in(path))
        or any((path / name).is_dir() for name in ("h5_files", "pt_files"))
        or _items_in(path)
    )


def _is_parquet_of_items(path: Path) -> bool:
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        schema = pq.read_schema(path)
    except (OSError, pa.ArrowException):
        return False
    names = set(schema.names)
    return bool(names & set(BAG_COLUMNS)) and any(is_vector(field.type) for field in schema)


def _items_in(folder: Path) -> Path | None:
    """Return the only Parquet file of items in a folder."""
    paths = [p for p in sorted(folder.glob("*.parquet")) if _is_parquet_of_items(p)]
    return paths[0] if len(paths) == 1 else None


def _tables_in(folder: Path) -> list[Path]:
    items = _items_in(folder)
    return [p for p in sorted(folder.iterdir()) if kind_of(p) is not None and p != items]


@dataclass(frozen=True)
class BagFolder:
    """The vectors of the bags, and the tables of their labels by split."""

    vectors: ItemVectors
    tables: Tables

    def spec(self, id_column: str | None) -> ColumnSpec:
        """Return how a table of labels is read: the text of a row is the name of a bag."""
        names = ID_COLUMNS if id_column is None else (id_column,)
        return ColumnSpec(text=names, label=LABEL_COLUMNS, tokenize=self._items, role="id")

    def _items(self, name: str) -> list[str]:
        bag = name.strip()
        if bag not in self.vectors.bags:
            bag = Path(bag).stem if Path(bag).suffix in (*SUFFIXES, ".pt", ".svs") else bag
        return self.vectors.names(bag) if bag in self.vectors.bags else []

    def with_names(self, texts: LabelledTexts, source: str) -> LabelledTexts:
        """Return rows that are named by their bags, with the vectors; bags without a file are counted.

        Raises:
            InputError: a bag of two rows, or no bag that has a file.
        """
        parts = {name: [_named(row) for row in rows] for name, rows in texts.parts.items()}
        keys = [row.key for rows in parts.values() for row in rows]
        if not keys:
            raise InputError(
                f"{source}: expected labels of bags that have a file, such as "
                f"{some_of([quoted(name) for name in self.vectors.bags], 3)}, got none"
            )
        if len(set(keys)) < len(keys):
            twice = next(key for key in keys if keys.count(key) > 1)
            raise InputError(
                f"{source}: expected one row with a label for each bag, got two of {twice}"
            )
        left_out = {_without_file(reason): count for reason, count in texts.left_out.items()}
        if unlabelled := len(self.vectors.bags) - len(keys):
            left_out["bags without a label"] = unlabelled
        columns = {
            "id" if name == "text" else name: column for name, column in texts.columns.items()
        }
        return replace(texts, parts=parts, left_out=left_out, columns=columns, vectors=self.vectors)


def _named(row: Row) -> Row:
    return replace(row, key=row.tokens[0].rpartition(":")[0], written=None)


def _without_file(reason: str) -> str:
    return "label of a bag without a file" if reason.startswith("empty ") else reason


def open_bags(path: Path, read_file: Callable[[Path], Rows]) -> BagFolder:
    """Open a folder of bags, or a Parquet file of items with their labels.

    Raises:
        InputError: no table of labels, or files that hold no bags.
    """
    if path.is_file():
        bags = ParquetBags(path)
        return BagFolder(_parquet_vectors(bags), Tables({"all": _labels_in(bags)}))
    if (items := _items_in(path)) is not None:
        return BagFolder(_parquet_vectors(ParquetBags(items)), _label_tables(path, read_file))
    paths = bag_paths(path)
    tables = _label_tables(path, read_file)
    files = {name: BagFile(file) for name, file in paths.items()}
    return BagFolder(_stored_vectors(files), tables)


def unlabelled_bags(path: Path) -> ItemVectors:
    """Open the bags of a folder, of a Parquet file of items, or of one file, without their labels.

    Raises:
        InputError: nothing there, or no bag.
    """
    if path.suffix == ".parquet" and path.is_file():
        return _parquet_vectors(ParquetBags(path))
    if path.is_dir() and (items := _items_in(path)) is not None:
        return _parquet_vectors(ParquetBags(items))
    is_bag = path.suffix in SUFFIXES and path.is_file()
    paths = {path.stem: path} if is_bag else bag_paths(path)
    if not paths:
        raise InputError(
            f"{path}: expected bags of vectors, because the model reads bags: a folder of them or one file "
            f"({', '.join(SUFFIXES)}), or a Parquet file of items, got none"
        )
    return _stored_vectors({name: BagFile(file) for name, file in paths.items()})


def _stored_vectors(files: Mapping[str, BagFile]) -> ItemVectors:
    width = common_width({str(file.path): file.shape for file in files.values()})
    return _unpadded({name: file.bag() for name, file in files.items()}, width)


def _parquet_vectors(bags: ParquetBags) -> ItemVectors:
    return _unpadded(bags.bags(), bags.width)


def _unpadded(bags: Mapping[str, StoredBag], width: int) -> ItemVectors:
    """Return the vectors of bags, which are refused if they seem filled up to one size."""
    if len({bag.count for bag in bags.values()}) == 1:
        ends = [bag.read()[[0, -1]] for bag in bags.values() if bag.count > 1]
        without_padding({next(iter(bags.values())).place: ends})
    return ItemVectors(bags, width, in_memory=False)


def _label_tables(folder: Path, read_file: Callable[[Path], Rows]) -> Tables:
    """Return the tables of labels: train, dev and test, or else labels.csv or the only table."""
    by_split = {
        name: path for name, path in split_files(folder).items() if path != _items_in(folder)
    }
    if by_split:
        return Tables({name: read_file(path) for name, path in by_split.items()})
    paths = [path for path in _tables_in(folder) if not path.name.startswith("splits_")]
    chosen = [path for path in paths if path.name == LABELS] or paths
    if len(chosen) != 1:
        raise InputError(
            f"{folder}: expected one table of labels, {LABELS} (bag_id,label), beside the bags, got "
            f"{some_of([path.name for path in paths]) if paths else 'none'}"
        )
    table, fold = read_file(chosen[0]), folder / FOLD
    if fold.exists() and "split" not in table.columns:
        table = _with_splits(table, read_file(fold))
    return Tables({"all": table})


def _with_splits(table: Rows, fold: Rows) -> Rows:
    """Return a table of labels with the splits of CLAM, whose table has a column of bags for each."""
    splits = [name for name in fold.columns if name in SPLIT_NAMES]
    split_of = {str(bag): name for name in splits for bag in fold.values(name)}
    ids = [[*map(str, table.values(name))] for name in table.columns]
    bags = max(ids, key=lambda values: len(split_of.keys() & values))
    added = {"split": [split_of.get(bag, f"not in {FOLD}") for bag in bags]}
    return replace(
        table, columns=[*table.columns, "split"], notes=[*table.notes, f"the splits are those of {FOLD}"],
        values=lambda name: added.get(name) or table.values(name),
    )  # fmt: skip


def _labels_in(bags: ParquetBags) -> Rows:
    """Return a table of the labels that a Parquet file of items has beside them, a row per bag.

    Raises:
        InputError: no column of labels, or items of one bag with different ones.
    """
    import pyarrow.parquet as pq

    names = pq.read_schema(bags.path).names
    column = next((name for name in LABEL_COLUMNS if name in names), None)
    if column is None:
        raise InputError(
            f"{bags.path}: expected a column {' / '.join(LABEL_COLUMNS[:2])} too, or a folder with this file "
            f"and {LABELS}; the columns are {some_of(names)}"
        )
    values = pq.read_table(bags.path, columns=[column]).column(0).to_pylist()
    labels = []
    for name, rows in bags.rows.items():
        if len(of_bag := {values[row] for row in rows}) > 1:
            raise InputError(
                f"{bags.path}, bag {name}: expected the same {column} for all items of a bag, got "
                f"{some_of(sorted(map(str, of_bag)))}"
            )
        labels.append(values[rows[0]])
    assert bags.bag_column is not None
    columns: Mapping[str, Sequence[object]] = {bags.bag_column: list(bags.rows), column: labels}
    return Rows([*columns], len(labels), lambda name: list(columns[name]))
