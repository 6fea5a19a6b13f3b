"""A page and files without texts: no word, query or id of the data is anywhere in their bytes."""

import base64
import io
import json
import re
import zipfile
import zlib
from dataclasses import replace

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from made_audits import make_audit
from tiny_audits import KINDS, tiny_audit, told
from tiny_audits import folder as folder  # noqa: PLC0414  # the fixture

from heedmap.data.load import load
from heedmap.report.anonymous import is_anonymous, without_texts
from heedmap.report.figures import figures
from heedmap.report.page import page
from heedmap.report.wording import distinct_texts, repeats_text
from heedmap.runs.folder import RunFolder

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def test_notes_hold_nothing_of_the_texts_that_they_quote(tmp_path):
    rows = [
        f'"<a href=""mailto:jane{i}@mail.org"">Jane</a> said\0 it was {i}",{i % 2}'
        for i in range(40)
    ]
    rows += ['"the same old Jane",0', '"the same old Jane",1']
    (tmp_path / "a.csv").write_text("\n".join(["text,label", *rows]))
    with pytest.warns(UserWarning, match="different labels"):
        corpus = load(tmp_path / "a.csv")
    assert any("jane" in note.lower() for note in corpus.notes)
    audit = tiny_audit("own")
    audit = replace(
        audit, about={**audit.about, "notes": [*corpus.notes, "x, attn_implementation='eager'"]}
    )
    bare = page(without_texts(audit))
    assert "jane" not in bare.lower()
    assert "texts that have different labels: 1 (first: ‘…’" in bare
    assert "HTML in 40 of 42 texts (&lt;a&gt;)" in bare
    assert len(without_texts(audit).about["notes"]) == len(corpus.notes) + 1
    assert without_texts(audit).about["notes"][-1] == "x, attn_implementation='eager'"


@pytest.fixture(scope="module", params=KINDS)
def audit(request):
    return tiny_audit(request.param)


def text_of(path):
    """All text in a file, packed or not."""
    content = path.read_bytes()
    if path.suffix == ".parquet":
        table = pq.read_table(io.BytesIO(content))
        return repr(table.to_pylist()) + repr(table.schema) + content.decode("latin-1")
    if path.suffix == ".xlsx":
        book = zipfile.ZipFile(io.BytesIO(content))
        return "".join(book.read(name).decode("utf-8") for name in book.namelist())
    return content.decode("utf-8")


def unpacked(page):
    """What the page holds compressed: the index of its texts."""
    packed = re.search(r'id="texts-index">"([^"]*)"', page)[1]
    return zlib.decompress(base64.b64decode(packed)).decode()


def test_the_page_and_its_figures_hold_none(audit):
    whole, bare = page(audit), page(without_texts(audit))
    assert told(whole)
    assert told(bare) == []
    assert told(unpacked(whole))
    assert told(unpacked(bare)) == []
    assert "The texts were left out of this page" in bare
    assert "The texts were left out of this page" not in whole
    assert "Adversarial weights are what it could use instead" not in bare  # the key to texts


def test_all_other_numbers_of_the_page_stay(audit):
    """The card is the same; so are the figures, but for the words in them."""
    whole, bare = page(audit), page(without_texts(audit))
    card = re.compile(r'<section id="card">.*?</section>', re.S)
    assert card.search(bare)[0] == card.search(whole)[0]
    assert [f.n for f in figures(without_texts(audit))] == [f.n for f in figures(audit)]
    assert [f.key for f in figures(without_texts(audit))] == [f.key for f in figures(audit)]


@pytest.mark.parametrize("file_format", ["csv", "jsonl", "parquet", "xlsx"])
def test_no_file_holds_any(audit, tmp_path, file_format):
    whole = audit.export(tmp_path / "whole", file_format)
    assert told("".join(map(text_of, whole)))
    bare = audit.export(tmp_path / "bare", file_format, texts=False)
    # What each word says for each class is left out as a whole: with the model it tells the word.
    kept = [path.name for path in whole if path.stem != "relevance"]
    assert [path.name for path in bare] == kept
    for path in bare:
        assert told(text_of(path)) == [], path


def test_saved_files_hold_none(audit, tmp_path):
    for name in ("a.html", "a.csv", "a.jsonl", "a.xlsx"):
        assert told(text_of(audit.save(tmp_path / name, texts=False))) == []


def test_the_audit_itself_keeps_its_texts(audit):
    before = audit.tables["instances"]["tokens"].to_pylist()
    assert is_anonymous(without_texts(audit))
    assert not is_anonymous(audit)
    assert audit.tables["instances"]["tokens"].to_pylist() == before


def test_repeated_texts_are_still_counted_once():
    audit = make_audit()
    assert distinct_texts(without_texts(audit)) == distinct_texts(audit) == 4
    assert repeats_text(without_texts(audit)) == repeats_text(audit)


def test_shared_words_of_different_texts_cannot_be_told():
    tokens = without_texts(make_audit()).tables["instances"]["tokens"].to_pylist()
    assert tokens[0] != tokens[1]
    assert not set(tokens[0]) & set(tokens[1])
    assert len(set(tokens[0])) == len(tokens[0]) == 12  # though it repeats words


@pytest.mark.parametrize(
    ("key", "shown"),
    [
        ("line 7", "line 7"), ("row 12", "row 12"), ("index 0", "index 0"), ("secret", "text 0"),
        ("mine.csv, line 7", "text 0"), ("line 7 of it", "text 0"), ("", "text 0"), ("line 7#1", "text 0"),
    ],
)  # fmt: skip
def test_a_place_in_the_data_stays_and_an_id_does_not(key, shown):
    audit = make_audit(n=1, lengths=(2,))
    instances = audit.tables["instances"]
    place = instances.column_names.index("key")
    tables = {**audit.tables, "instances": instances.set_column(place, "key", pa.array([key]))}
    assert without_texts(replace(audit, tables=tables)).tables["instances"]["key"].to_pylist() == [
        shown
    ]


def test_recorded_texts_and_other_packages_columns_of_text_are_left_out():
    audit = make_audit(n=2, lengths=(2,))
    tables = {
        **audit.tables,
        "dynamics": pa.table({"row": [0, 0], "step": [0, 1], "tokens": [["secret", "word"], None]}),
        "theirs": pa.table({"row": [0], "note": ["secret"], "more": [["secret"]], "score": [0.5]}),
    }
    bare = without_texts(replace(audit, tables=tables)).tables
    assert bare["dynamics"]["tokens"].to_pylist() == [["0.0", "0.1"], None]
    assert bare["theirs"].to_pylist() == [{"row": 0, "note": None, "more": None, "score": 0.5}]
    names = pa.table({"row": [0], "view": ["raw"]})
    scan = without_texts(replace(audit, tables={**audit.tables, "scan": names})).tables["scan"]
    assert scan["view"].to_pylist() == ["raw"]  # a name of ours


def test_the_command_writes_a_second_page_to_forward(heedmap, folder):
    done = heedmap("report", folder, "--without-texts")
    assert done.code == 0, done.err
    bare = folder / "report-without-texts.html"
    assert done.out.splitlines()[-1] == f"Report without texts: {bare}"
    assert told(text_of(bare)) == []
    assert told(text_of(folder / "report.html"))
    first = bare.read_bytes()
    assert heedmap("report", folder, "--without-texts", "--json").code == 0
    assert bare.read_bytes() == first
    assert bare.name in json.loads((folder / "manifest.json").read_text())["files"]


def test_the_command_exports_without_texts(heedmap, folder, tmp_path):
    done = heedmap("export", folder, "--without-texts", "--out", tmp_path / "out")
    assert done.code == 0, done.err
    paths = [path for path in (tmp_path / "out").rglob("*") if path.is_file()]
    assert len(paths) > 10
    assert [path for path in paths if told(text_of(path))] == []


def test_another_audit_removes_the_page_without_texts(folder):
    from heedmap.runs.conclusions import remove_conclusions

    audit, run = tiny_audit("own"), RunFolder(folder)
    run.manifest.write(run.report_without_texts, page(without_texts(audit)))
    remove_conclusions(run)
    assert not run.report_without_texts.exists()
    assert not run.report.exists()
