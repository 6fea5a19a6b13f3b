"""Files without a header, fastText's lines, and texts that go on in columns without a name."""

import pytest
from wording import refused, warned

from heedmap.data.load import load
from heedmap.data.readers import read_rows

ROWS = [f"gj04\t{i % 2}\t{'*' * (i % 2)}\tThe film number {i} was dull to me\n" for i in range(40)]


def test_a_file_without_a_header_is_read_by_places(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("".join(ROWS))
    corpus = load(path, header="none", text=4, label="2")
    assert sum(map(len, corpus.splits.values())) == 40
    assert corpus.classes == ["0", "1"]
    assert read_rows(path, header="none").place_of(0) == f"{path}, line 1"
    path.write_text("".join(ROWS) + "one\tmore\tfield\tthan\tthese\n")
    with refused("line 41", "(4)", "got 5"):
        read_rows(path, header="none")


def test_a_missing_header_is_suspected_aloud(tmp_path):
    path = tmp_path / "a.tsv"
    path.write_text("".join(ROWS))
    with refused("no label column", "gj04, 0, ", "--header none"):
        load(path)
    with warned("('gj04', '0', ", "--header none"):
        load(path, text="The film number 0 was dull to me", label="0")
    path.write_text("1\t1\ta good text\n" + "1\t1\ta bad text\n" * 20)
    with refused("column 1", "2", "--header none"):
        load(path, text="a good text", label="1")


@pytest.mark.parametrize(
    "header", ["text,label", "0,1", "1,2", "Unnamed: 0,label", "text of the review,stars"]
)
def test_a_header_is_not_suspected(tmp_path, header):
    (tmp_path / "a.csv").write_text(header + "\n" + "some words,1\nand more,0\n" * 9)
    rows = read_rows(tmp_path / "a.csv")
    assert (list(rows.notes), rows.hint) == ([], "")


def test_an_excel_file_without_a_header_is_read_by_places(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for i in range(40):
        book.active.append([i % 2, None if i == 0 else "x", f"a text {i}"])
    book.save(tmp_path / "a.xlsx")
    rows = read_rows(tmp_path / "a.xlsx", header="none")
    assert rows.columns == ["1", "2", "3"]
    assert (len(rows), rows.values("3")[0]) == (40, "a text 0")
    assert rows.place_of(0) == f"{tmp_path / 'a.xlsx'}, row 1"
    assert load(tmp_path / "a.xlsx", header="none", text=3, label=1).classes == ["0", "1"]


def test_a_missing_header_of_an_excel_file_is_suspected_aloud(tmp_path):
    openpyxl = pytest.importorskip("openpyxl")
    book = openpyxl.Workbook()
    for i in range(40):
        book.active.append([f"a text {i}", ("pos", "neg")[i % 2], i % 2])
    path = tmp_path / "a.xlsx"
    book.save(path)
    with refused("text column", "a text 0, pos, 0", "--header none"):
        load(path)
    with warned("('pos', '0')", "--header none"):
        load(path, text="a text 0", label="pos")


def test_a_header_of_what_has_none_is_refused(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"text": "a", "label": 1}\n')
    for source in (tmp_path / "a.jsonl", "reviews"):
        with refused("--header none", source, "leave it out"):
            load(source, header="none")


@pytest.mark.parametrize("name", ["a.txt", "a.csv", "a.tsv"])
@pytest.mark.parametrize("gap", [" ", "\t", "  "])
def test_lines_of_fasttext_are_texts_and_labels(tmp_path, name, gap):
    lines = [
        f"__label__{'sport' if i % 2 else 'art-1'}{gap}The game, number {i}" for i in range(40)
    ]
    (tmp_path / name).write_text(
        "\n".join([*lines, "", "a text, no label", "at the end __label__art-1"])
    )
    rows = read_rows(tmp_path / name)
    assert rows.values("text")[0] == "The game, number 0"
    assert rows.values("text")[-1] == "at the end"
    assert rows.place_of(40) == f"{tmp_path / name}, line 42"
    corpus = load(tmp_path / name)
    assert (corpus.classes, corpus.left_out) == (["art-1", "sport"], {"label missing": 1})


def test_a_folder_of_fasttexts_files_has_its_splits(tmp_path):
    lines = [f"__label__{'ab'[i % 2]} The game, number {i}\n" for i in range(60)]
    (tmp_path / "train.txt").write_text("".join(lines[:40]))
    (tmp_path / "test.txt").write_text("".join(lines[40:]))
    corpus = load(tmp_path)
    assert (corpus.classes, len(corpus.splits["test"])) == (["a", "b"], 20)


def test_lines_of_several_labels_are_refused_with_their_number(tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("__label__a one\n" * 9 + "__label__a __label__b two\n__label__b __label__c x\n")
    with refused("line 10", "a, b", "2 of 11 lines"):
        load(path)


def test_a_column_of_such_labels_is_no_file_of_fasttext(tmp_path):
    (tmp_path / "a.csv").write_text("label,text\n" + "__label__1,good\n__label__2,bad\n" * 20)
    assert load(tmp_path / "a.csv").classes == ["__label__1", "__label__2"]


@pytest.mark.filterwarnings("ignore:.*columns without a name")
def test_texts_that_go_on_in_columns_without_a_name_are_noted(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("v1,v2,,\n" + "ham,a text,,\n" * 20 + "spam,a text, with commas, two\n" * 20)
    corpus = load(path, text="v2", label="v1")
    assert corpus.notes[0].startswith(
        "columns without a name have values in 20 of 40 rows (first: line 22)"
    )
    joined = load(path, text="v2,Unnamed: 2,Unnamed: 3", label="v1")
    assert not any("without a name" in note for note in joined.notes)
    assert corpus.classes == ["ham", "spam"]
    tokens = [text for split in joined.splits.values() for text in split.tokens]
    assert ["a", "text", "with", "commas", "two"] in tokens
    path.write_text(",text,label\n" + "0,a,x\n1,b,y\n" * 20)  # as pandas numbers the rows
    assert not read_rows(path).notes


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet", "xlsx", "frame"])
def test_a_column_of_numbers_is_joined(tmp_path, kind):
    import pandas as pd

    frame = pd.DataFrame(
        {
            "stars": [*range(1, 6)] * 8 + [None],
            "title": [f"The film {i}" for i in range(41)],
            "label": ["a", "b"] * 20 + ["a"],
        }
    )
    path = tmp_path / f"a.{kind}"
    if kind == "csv":
        frame.convert_dtypes().to_csv(path, index=False)
    elif kind == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    elif kind == "parquet":
        frame.to_parquet(path)
    elif kind == "xlsx":
        frame.to_excel(path, index=False)
    corpus = load(frame if kind == "frame" else path, text="stars,title")
    texts = {tuple(text) for split in corpus.splits.values() for text in split.tokens}
    assert {("1", "the", "film", "0"), ("the", "film", "40")} <= texts


def test_lists_are_not_joined_in_silence(tmp_path):
    (tmp_path / "a.jsonl").write_text('{"a": "x", "b": ["y"], "label": 1}\n' * 9)
    with refused("line 1", "['y']"):
        load(tmp_path / "a.jsonl", text="a,b")
