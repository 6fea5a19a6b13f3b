"""`heedmap card`: the head of the card for slides and papers says all that the card says, and harms nobody."""

import io
import re
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from made_audits import make_audit, put_tables
from PIL import Image
from wording import stopped

import heedmap as hm
from heedmap.experiments.rates import packaged_rates
from heedmap.files.content_hash import tables_hash
from heedmap.report.card_content import card_content
from heedmap.report.card_files import FORMATS, SCALE, WIDTH, card_file, latex, markdown, svg, tex
from heedmap.runs.audit_folder import keep_tables
from heedmap.runs.audited import Audit
from heedmap.runs.folder import RunFolder

LONG = "interminable " * 20 + "W" * 200 + " 日本語のとても長い名前"


@pytest.fixture(scope="module")
def audit() -> Audit:
    return replace(make_audit(classes=3), rates=packaged_rates())


def words(text):
    return re.sub(r"\s+", " ", text)


def lines_of(picture):
    return [element.text for element in ElementTree.fromstring(picture) if element.text]


def test_the_content_is_that_of_the_card(audit):
    content, line = card_content(audit), audit.bottom_line
    assert content.sentence.endswith(line.sentence)
    assert content.details[: len(line.details)] == line.details
    assert any("Caution: only 4 different texts" in detail for detail in content.details)
    judged = [finding for finding in audit.findings if finding.level != "for comparison"]
    assert [question.topic for question in content.questions] == [f.topic for f in judged]
    assert content.questions[0].n == "n = 40 (4 different texts)"
    assert dict(content.facts)["audited"] == "40 of 45 test texts, a seeded sample"
    beginning = tables_hash(audit.tables)[:16]
    assert content.source == f"heedmap {hm.__version__}, tables sha256 {beginning}"


def test_every_format_says_all_of_it(audit):
    content = card_content(audit)
    said = [content.sentence, *content.details, content.source]
    said += [
        text for one in content.questions for text in (one.words, one.topic, one.number, one.n)
    ]
    picture = words(" ".join(lines_of(card_file(audit, "svg").decode())))
    plain = re.sub(r"\\(.)", r"\1", card_file(audit, "md").decode())
    typeset = card_file(audit, "tex").decode()
    for text in said:
        assert text in picture
        assert text in plain
        assert tex(text) in typeset


def test_the_same_audit_gives_the_same_bytes_read_back_too(audit, tmp_path):
    folder = RunFolder(tmp_path / "run")
    folder.write_settings(audit.settings)
    keep_tables(audit, folder, weights="", files_beside={})
    from heedmap.files.identity import identity
    from heedmap.files.table_folder import TableFolder

    tables = TableFolder(folder.tables, identity(audit.settings, "", audit.classes))
    again = replace(audit, tables={name: tables.table(name) for name in reversed([*audit])})
    assert tables_hash(again.tables) == tables_hash(audit.tables)
    for file_format in FORMATS:
        assert card_file(audit, file_format) == card_file(again, file_format)


def test_nothing_is_cut_off_however_long(audit):
    content = card_content(audit)
    long = replace(
        content, sentence=LONG, details=[LONG], facts=[("classes", LONG)],
        questions=[replace(content.questions[0], topic=LONG, number=LONG)],
    )  # fmt: skip
    picture = svg(long)
    told = "".join(lines_of(picture)).replace(" ", "")
    assert told.count(LONG.replace(" ", "")) >= 3  # a row's three texts stand beside one another
    from heedmap.report.drawing import draw_with

    image = np.asarray(
        Image.open(io.BytesIO(draw_with("svg_to_png", picture, scale=1))).convert("RGB")
    )
    for edge in (image[:, -16:], image[:16, 16:], image[-16:, 16:]):
        assert (edge == 255).all()


def test_a_png_is_the_picture_at_twice_its_size(audit):
    image = Image.open(io.BytesIO(card_file(audit, "png")))
    height = float(ElementTree.fromstring(card_file(audit, "svg")).attrib["height"])
    assert image.size == (SCALE * WIDTH, SCALE * height)


def test_the_picture_is_valid_and_asks_for_nothing(audit):
    evil = "<script>alert(1)</script> & \x1b[31m ]]> \uffff &amp; \"'"
    picture = svg(replace(card_content(audit), sentence=evil, details=[evil], facts=[(evil, evil)]))
    root = ElementTree.fromstring(picture)
    assert {element.tag.rpartition("}")[2] for element in root.iter()} == {
        "svg",
        "rect",
        "text",
        "path",
    }
    names = {name for element in root.iter() for name in element.attrib}
    assert not [name for name in names if name.startswith("on") or "href" in name]
    assert "<script>alert(1)</script> & \\x1b[31m ]]>" in " ".join(lines_of(picture))


@pytest.mark.parametrize(
    "evil",
    [
        "**bold** _i_ `code` [a](http://b) <b>x</b> ~~s~~ $x$ # h &lt; a|b \\", "+ item", "1. item", "- item",
        "two\nlines",
    ],
)  # fmt: skip
def test_no_text_of_the_data_is_markdown(audit, evil):
    content = card_content(audit)
    made = markdown(
        replace(
            content, details=[evil], facts=[("data", evil)],
            questions=[replace(content.questions[0], topic=evil)],
        )
    )  # fmt: skip
    detail = made.split("\n\n")[2]
    assert not re.search(r"(?<!\\)[*_`\[\]<>~$#&|]", detail)
    assert not re.match(r"[-+]\s|\d+\.\s", detail)
    assert "\n" not in detail
    for line in re.findall(r"^\|.*\|$", made, re.M):
        assert len(re.findall(r"(?<!\\)\|", line)) == 4
    if evil != "two\nlines":
        assert re.sub(r"\\([^a-zA-Z\s])", r"\1", detail) == evil.rstrip(
            "\\"
        ) + "\\" * evil.endswith("\\")


def test_no_text_of_the_data_is_latex(audit):
    evil = r"\input{/etc/passwd} 50% a_b^c {x} $y$ #1 & ~ <t> | -- `q' \\[2cm] % end"
    made = latex(
        replace(card_content(audit), sentence=evil, details=[evil], facts=[("data", evil)])
    )
    typeset = tex(evil)
    assert typeset in made
    assert "\\input" not in made
    assert not re.search(r"(?<!\\)[%#&_](?!\w*})", typeset)
    assert "--" not in typeset
    # Without its own symbols every brace is balanced.
    bare = re.sub(r"\\[{}]", "", made)
    depth = np.cumsum([{"{": 1, "}": -1}.get(letter, 0) for letter in bare])
    assert depth.min() >= 0
    assert depth[-1] == 0


def test_our_own_symbols_need_no_package():
    said = tex("+ ~ − ? · “a” ≤ × … ε τ ½ – ’ ±")
    assert said.isascii()


def test_a_card_without_questions_has_no_table(audit):
    bare = replace(card_content(audit), questions=[])
    assert "|" not in markdown(bare)
    assert "tabular" not in latex(bare)
    assert "path" in svg(bare)


@pytest.fixture
def folder(audit, tmp_path):
    return put_tables(audit, tmp_path / "run")


@pytest.mark.parametrize("file_format", FORMATS)
def test_the_command_writes_beside_the_run(heedmap, folder, file_format):
    done = heedmap("card", folder, "--format", file_format)
    path = folder / f"card.{file_format}"
    assert (done.code, done.out) == (0, f"Card: {path}\n"), done.err
    content = path.read_bytes()
    assert heedmap("card", folder, "--format", file_format).code == 0  # the same bytes
    assert path.read_bytes() == content


def test_the_command_replaces_another_file_only_with_overwrite(heedmap, folder, tmp_path):
    out = tmp_path / "mine.md"
    out.write_text("mine")
    asked = ("card", folder, "--format", "md", "--out", out)
    stopped(heedmap(*asked), "mine.md", "--overwrite")
    assert out.read_text() == "mine"
    assert heedmap(*asked, "--overwrite").code == 0
    assert out.read_text("utf-8").startswith("**Should you heed the heat map?**")
    (tmp_path / "link.md").symlink_to(out)
    stopped(
        heedmap("card", folder, "--out", tmp_path / "link.md", "--overwrite"), "link.md", "link"
    )


def test_the_format_of_a_card_is_that_of_its_name(heedmap, folder, tmp_path):
    assert heedmap("card", folder, "--out", tmp_path / "card.png").code == 0
    assert (tmp_path / "card.png").read_bytes().startswith(b"\x89PNG")
    for name, options in (("card.txt", ()), ("card", ()), ("card.png", ("--format", "svg"))):
        out = tmp_path / "other" / name
        stopped(heedmap("card", folder, "--out", out, *options), name, ".svg")
        assert not out.parent.exists()
