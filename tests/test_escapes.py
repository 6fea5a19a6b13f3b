"""A user's words stay plain text in the Markdown, LaTeX and CSV files of a reproduction."""

import csv
import io
import re
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest
from conftest import small_corpus
from markdown_it import MarkdownIt

from heedmap.papers.drozdyuk.reproduction import Drozdyuk
from heedmap.papers.drozdyuk.result import result as drozdyuk_result
from heedmap.papers.drozdyuk.settings import DrozdyukSettings
from heedmap.papers.jain_wallace.measures import Cell, Measured
from heedmap.papers.jain_wallace.numbers import DatasetNumbers
from heedmap.papers.jain_wallace.result import result
from heedmap.papers.kit.render import csv_text, latex, markdown, page
from heedmap.terminal.escapes import latex_text, markdown_text
from heedmap.terminal.output import csv_cell, printable

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


def wallace(text):
    """What a reproduction of Jain & Wallace would keep of data with such a class and such a column."""
    cell = Cell("sst", "lstm", "additive", 0)
    numbers = [
        Measured(cell, quantity, predicted, 0.4, 0.2, 0.5, 10, 1)
        for quantity in ("attention~gradient", "attention~leave_one_out", "accuracy")
        for predicted in (text, "Overall")
    ]
    more = {"left_out": {f"empty {text}": 3}, "made": [f"word vectors {text}"]}
    return result([DatasetNumbers("sst", "paper", numbers, **more)])


@pytest.mark.parametrize("text", HOSTILE)
def test_the_markdown_of_jain_and_wallace_has_no_live_text(text):
    said = markdown(wallace(text))
    plain = markdown(wallace("plain"))
    kinds = [
        token.type for token in tokens(said) if not token.type.startswith(("text", "softbreak"))
    ]
    assert kinds == [t.type for t in tokens(plain) if not t.type.startswith(("text", "softbreak"))]
    shown = unescape("".join(t.content for t in tokens(said) if t.type.startswith("text")))
    assert unescape(printable(text)).strip() in shown


@pytest.mark.parametrize("text", HOSTILE)
def test_the_latex_of_jain_and_wallace_is_comments_and_one_table(text):
    said = latex(wallace(text)).splitlines()
    other_letters = "中" in text  # are named in a comment
    assert len(said) == len(latex(wallace("plain")).splitlines()) + other_letters
    assert all(line.startswith("%") for line in said[: said.index(r"\begin{table}")])
    body = [line for line in said if line.endswith(r" \\")][1:]
    assert len(body) == 4
    for line in body:
        across = line.count(r"\multicolumn{2}")
        assert len(re.findall(r"(?<!\\)&", line)) + across == 9
        assert "\\input" not in line
    (row,) = {line.split(" & ")[3] for line in body if "Overall" not in line}
    assert row.removeprefix("{}") == latex_text(text)


@pytest.mark.parametrize("text", HOSTILE)
def test_the_csv_of_jain_and_wallace_has_one_line_a_number(text):
    said = csv_text(wallace(text))
    assert len(said.splitlines()) == 7
    rows = list(csv.DictReader(io.StringIO(said, newline="")))
    assert {row["predicted"] for row in rows} == {csv_cell(text), "Overall"}


def drozdyuk(text):
    """What a reproduction of Drozdyuk et al. shows of data with such a name."""
    settings = DrozdyukSettings.of(fingerprint="", data=small_corpus().settings)
    return drozdyuk_result(Drozdyuk(f"on {text}", settings, [f"Texts of {text}"], Path()))


@pytest.mark.parametrize("text", HOSTILE)
def test_the_markdown_of_drozdyuk_has_no_live_text(text):
    said, plain = ([t.type for t in tokens(markdown(drozdyuk(one)))] for one in (text, "plain"))
    assert [t for t in said if not t.startswith("text")] == [
        t for t in plain if not t.startswith("text")
    ]


@pytest.mark.parametrize("text", HOSTILE)
@pytest.mark.parametrize("result_of", [wallace, drozdyuk])
def test_the_page_has_no_live_text(text, result_of):
    class Tags(HTMLParser):
        def __init__(self, source):
            super().__init__()
            self.found = []
            self.feed(source)

        def handle_starttag(self, tag, attrs):
            self.found.append(tag)

    assert Tags(page(result_of(text))).found == Tags(page(result_of("plain"))).found
