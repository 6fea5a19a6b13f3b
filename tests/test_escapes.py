"""A user's words in the files of a reproduction: in Markdown, LaTeX and CSV they stay words."""

import csv
import io
import re
from html import unescape

import pytest
from markdown_it import MarkdownIt

from heedmap.papers.drozdyuk_tables import markdown as drozdyuk_markdown
from heedmap.papers.escapes import latex_text, markdown_text
from heedmap.papers.jain_wallace.measures import Cell, Measured
from heedmap.papers.jain_wallace.results import Result
from heedmap.papers.jain_wallace.tables import csv_text
from heedmap.papers.jain_wallace.telling import latex, markdown
from heedmap.terminal import printable

HOSTILE = [
    "\n\\input{/etc/passwd}",
    "\r\\write18{rm}",
    "x\u2028\\input{y}",
    "\\\\ & \\def\\x{y} ^^M \\end{tabular}",
    '100% $x$ #1 {a} ~ ^ _a_ & <b> | "q"',
    "<script>alert(1)</script>",
    "<!-- x",
    "[link](javascript:alert(1))",
    "![picture](http://x/y.png)",
    "[ref][1]\n\n[1]: http://x",
    "<http://x.y>",
    "&lt;b&gt; &copy; &#60;",
    "`code` **bold** __bold__ ~~gone~~ a_b_c",
    "a | b | c",
    "one\n\n# heading\n\n* list\n\n    code",
    "a \\| b \\` c \\<i>",
    "\x1b[31mred\x07",
    "plain",
    "naïve 中文",
    '=cmd|"/c calc"!A1, "quoted"',
]
QUIET = {"inline", "paragraph_open", "paragraph_close", "text", "text_special"}


def tokens(text, markdown=None):
    reader = (markdown or MarkdownIt("commonmark", {"html": True})).enable(
        ["table", "strikethrough"]
    )
    found = []
    for token in reader.parse(text):
        found.append(token)
        found += token.children or []
    return found


@pytest.mark.parametrize("text", HOSTILE)
def test_in_markdown_it_is_that_very_text(text):
    found = tokens(f"A note: {markdown_text(text)}")
    assert {token.type for token in found} <= QUIET
    shown = "".join(token.content for token in found if token.type.startswith("text"))
    assert shown.rstrip() == f"A note: {printable(text)}".rstrip()


@pytest.mark.parametrize("text", HOSTILE)
def test_in_latex_every_special_mark_is_escaped(text):
    said = latex_text(text)
    assert len(said.splitlines()) == 1
    for command in re.findall(r"\\[a-zA-Z]+(?:\{\})?", said):
        assert command in (
            r"\textbackslash{}", r"\textasciicircum{}", r"\textasciitilde{}", r"\textless{}",
            r"\textgreater{}", r"\textbar{}", r"\pm",
        )  # fmt: skip
    plain = re.sub(r"\\text[a-z]+\{\}|\\[{}&%_#$]", "", said)
    assert not set(plain) & set("\\{}&%_#$^~<>|")


def results(text):
    """What a reproduction of Jain & Wallace would keep of data with such a class and such a column."""
    cell = Cell("sst", "lstm", "additive", 0)
    numbers = [
        Measured(cell, quantity, predicted, 0.4, 0.2, 0.5, 10, 1)
        for quantity in ("attention~gradient", "attention~leave_one_out", "accuracy")
        for predicted in (text, "Overall")
    ]
    return [
        Result(
            "sst", "paper", numbers, left_out={f"empty {text}": 3}, made=[f"word vectors {text}"]
        )
    ]


@pytest.mark.parametrize("text", HOSTILE)
def test_the_markdown_of_jain_and_wallace_has_no_live_text(text):
    said = markdown(results(text))
    plain = markdown(results("plain"))
    kinds = [
        token.type for token in tokens(said) if not token.type.startswith(("text", "softbreak"))
    ]
    assert kinds == [t.type for t in tokens(plain) if not t.type.startswith(("text", "softbreak"))]
    shown = unescape("".join(t.content for t in tokens(said) if t.type.startswith("text")))
    assert unescape(printable(text)).strip() in shown


@pytest.mark.parametrize("text", HOSTILE)
def test_the_latex_of_jain_and_wallace_is_comments_and_one_table(text):
    said = latex(results(text)).splitlines()
    assert len(said) == len(latex(results("plain")).splitlines())
    assert all(line.startswith("%") for line in said[: said.index(r"\begin{tabular}{lllllll}")])
    body = [line for line in said if line.endswith(r" \\")]
    assert len(body) == 5
    for line in body:
        assert len(re.findall(r"(?<!\\)&", line)) == 6
        assert "\\input" not in line
    (row,) = {line.split(" & ")[3] for line in body[1:] if "Overall" not in line}
    assert row == latex_text(text)


@pytest.mark.parametrize("text", HOSTILE)
def test_the_csv_of_jain_and_wallace_has_one_line_a_number(text):
    said = csv_text(results(text))
    assert len(said.splitlines()) == 7
    rows = list(csv.DictReader(io.StringIO(said, newline="")))
    assert {row["predicted"] for row in rows} == {printable(text), "Overall"}


@pytest.mark.parametrize("text", HOSTILE)
def test_the_markdown_of_drozdyuk_has_no_live_text(text):
    said, plain = (
        [t.type for t in tokens(drozdyuk_markdown(f"on {one}", [f"Texts of {one}"], [], []))]
        for one in (text, "plain")
    )
    assert [t for t in said if not t.startswith("text")] == [
        t for t in plain if not t.startswith("text")
    ]
