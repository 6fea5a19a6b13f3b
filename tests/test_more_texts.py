"""The pages beside the report, of the texts that it has no room for."""

import base64
import json
import re
import warnings
import zlib

import pytest
from made_audits import Elements, make_audit
from tiny_audits import KINDS, tiny_audit, told
from tiny_audits import folder as folder  # noqa: PLC0414  # the fixture

from heedmap.report import page as page_module
from heedmap.report import text_data
from heedmap.report.anonymous import without_texts
from heedmap.report.page import page, pages
from heedmap.runs.audit_folder import conclude, write_without_texts
from heedmap.runs.conclusions import remove_conclusions
from heedmap.runs.folder import RunFolder
from heedmap.terminal.output import Note

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning")


def set_most(monkeypatch, most):
    """Let a page hold so many texts; examples, of which there are more than that, are left out."""
    monkeypatch.setattr(page_module, "choose_examples", lambda *args: [])
    monkeypatch.setattr(page_module, "MOST", most)
    monkeypatch.setattr(text_data, "MOST", most)


def index_of(html):
    packed = re.search(r'id="texts-index">"([^"]*)"', html)[1]
    return json.loads(zlib.decompress(base64.b64decode(packed)))


@pytest.mark.parametrize(
    ("n", "most", "texts"), [(23, 10, [10, 10, 3]), (20, 10, [10, 10]), (10, 10, [10])]
)
def test_every_text_is_on_one_page_in_the_order_of_the_data(monkeypatch, n, most, texts):
    set_most(monkeypatch, most)
    audit = make_audit(n=n)
    made = dict(pages(audit, "report.html"))
    assert [*made] == ["report.html", *(f"report-more/{i + 1}.html" for i in range(len(texts) - 1))]
    indices = [index_of(html) for html in made.values()]
    assert [len(index["key"]) for index in indices] == texts
    assert all(index["total"] == n for index in indices)
    keys = audit.tables["instances"]["key"].to_pylist()
    places = [keys.index(key) for index in indices for key in index["key"]]
    assert sorted(places) == list(range(n))
    others = places[texts[0] :]
    assert others == sorted(others)
    for index, html in zip(indices, made.values(), strict=True):
        instances = audit.tables["instances"].to_pylist()
        for i, key in enumerate(index["key"]):
            row = instances[keys.index(key)]
            assert index["tokens"][i] == row["tokens"]
            assert index["confidence"][i] == pytest.approx(max(row["probabilities"]), rel=1e-6)
        assert ('id="card"' in html) == (html is made["report.html"])
    assert dict(pages(audit, "report.html")) == made


def test_the_report_says_which_texts_it_holds_and_links_the_others(monkeypatch):
    set_most(monkeypatch, 10)
    audit = make_audit(n=23)
    html, first, _ = dict(pages(audit, "of <mine>?.html")).values()
    text = " ".join(" ".join(Elements(html).text).split())
    assert (
        "This page holds 10 of the 23 audited texts: those with the smallest and the largest values of each "
        "number, and an even sample of the others, in the order of the data. The others are in files beside "
        "this page: 1 to 10 , 11 to 13 ."
    ) in text
    addresses = [attrs["href"] for tag, attrs in Elements(html).found if tag == "a"]
    assert "of%20%3Cmine%3E%3F-more/1.html" in addresses
    assert ("a", {"href": "../of%20%3Cmine%3E%3F.html"}) in Elements(first).found
    assert "This page holds" not in page(make_audit(n=10))
    assert "The others are in the tables of the run." in page(audit)


def test_a_page_of_hostile_names_holds_no_element_of_theirs(monkeypatch):
    set_most(monkeypatch, 10)
    _, beside = dict(pages(make_audit(n=20), "report.html")).values()
    tags = [tag for tag, _ in Elements(beside).found]
    assert tags.count("script") == 3  # the index, a block, and our own
    assert "unsafe" not in beside[: beside.index("</head>")]


@pytest.mark.parametrize("kind", KINDS)
def test_pages_without_texts_hold_none(monkeypatch, kind):
    set_most(monkeypatch, 4)
    audit = tiny_audit(kind)
    whole, bare = (dict(pages(a, "x.html")) for a in (audit, without_texts(audit)))
    assert [*whole] == ["x.html", "x-more/1.html"] == [*bare]
    assert told(json.dumps(index_of(whole["x-more/1.html"])))
    for html in bare.values():
        assert told(html) == []
        assert told(json.dumps(index_of(html), ensure_ascii=False)) == []
    assert "The texts were left out of this page" in bare["x-more/1.html"]


def test_a_run_writes_its_pages_through_its_manifest_and_removes_them(monkeypatch, folder):
    run, audit = RunFolder(folder), tiny_audit("own")
    assert not (folder / "report-more").exists()
    set_most(monkeypatch, 2)
    conclude(audit, run)
    write_without_texts(audit, run)
    names = [f"report{which}-more/{i}.html" for which in ("", "-without-texts") for i in (1, 2)]
    listed = json.loads((folder / "manifest.json").read_text())["files"]
    for name in names:
        assert (folder / name).is_file()
        assert name in listed
    before = (folder / names[0]).read_bytes()
    conclude(audit, run)
    assert (folder / names[0]).read_bytes() == before
    set_most(monkeypatch, 4)
    conclude(audit, run)  # another audit, which needs one page
    assert sorted(path.name for path in (folder / "report-more").iterdir()) == ["1.html"]
    remove_conclusions(run)
    assert [path for path in folder.iterdir() if path.name.startswith("report")] == []
    conclude(audit, run)
    run.clear()
    assert [*folder.iterdir()] == []


def test_a_saved_report_has_its_pages_beside_it_and_says_so(monkeypatch, tmp_path):
    audit = tiny_audit("own")
    path = tmp_path / "mine.htm"
    set_most(monkeypatch, 2)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        audit.save(path)
    (said,) = [str(w.message) for w in caught if w.category is Note]
    assert said == f"{path}: 2 more with the other texts in {tmp_path / 'mine-more'}"
    assert 'href="../mine.htm"' in (tmp_path / "mine-more" / "1.html").read_text()
    assert 'href="mine-more/2.html"' in path.read_text()
    audit.save(path, texts=False)  # replaces them: no text of the earlier report stays
    for file in tmp_path.rglob("*.htm*"):
        assert told(file.read_text()) == []
        assert told(json.dumps(index_of(file.read_text()))) == []
    (tmp_path / "mine-more" / "notes.txt").write_text("of the user")
    set_most(monkeypatch, 100)
    audit.save(path)
    assert [file.name for file in (tmp_path / "mine-more").iterdir()] == ["notes.txt"]
    (tmp_path / "mine-more" / "notes.txt").unlink()
    set_most(monkeypatch, 2)
    audit.save(path)
    set_most(monkeypatch, 100)
    audit.save(path)
    assert not (tmp_path / "mine-more").exists()
