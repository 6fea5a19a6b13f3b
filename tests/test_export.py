"""`heedmap figures`: the files are complete, valid, the same each time, and agree with the page."""

import io
import re
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from made_audits import make_audit, put_tables
from PIL import Image
from rich.cells import cell_len
from wording import refused, stopped

from heedmap.report.charts import PALETTE, Figure, Key
from heedmap.report.export import DPI, UNIT, WIDTHS, export, render
from heedmap.report.figures import figures
from heedmap.report.labelled_charts import ADVANCE, wrapped
from heedmap.runs.audited import Audit

TWO = ("tau-gradient", "adversary")
INCH = 25.4  # mm


@pytest.fixture(scope="module")
def audit() -> Audit:
    return make_audit()


@pytest.fixture
def folder(audit, tmp_path):
    """A run folder with the tables of an audit."""
    return put_tables(audit, tmp_path / "run")


def draw(figure: Figure, width: float = WIDTHS["column"]) -> str:
    return render(figure, "svg", width).decode("utf-8")


def letters(svg: str) -> str:
    return " ".join(ElementTree.fromstring(svg).itertext())


def pixels(content: bytes) -> np.ndarray:
    return np.asarray(Image.open(io.BytesIO(content)).convert("RGB"))


@pytest.mark.parametrize("width", [84.0, 178.0])
def test_every_format_is_valid_and_as_wide_as_wanted(audit, tmp_path, width):
    inches = width / INCH
    paths = export(figures(audit), tmp_path, ("pdf", "svg", "png"), TWO, width=width)
    assert {p.name for p in paths} == {f"{k}.{f}" for k in TWO for f in ("pdf", "svg", "png")}
    assert {p.name for p in tmp_path.iterdir()} == {"manifest.json", *(p.name for p in paths)}
    for key in TWO:
        root = ElementTree.parse(tmp_path / f"{key}.svg").getroot()
        assert root.tag == "{http://www.w3.org/2000/svg}svg"
        high = float(root.attrib["height"])
        pdf = (tmp_path / f"{key}.pdf").read_bytes()
        assert pdf.startswith(b"%PDF-")
        assert pdf.rstrip().endswith(b"%%EOF")
        box = re.search(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf)
        assert float(box[1]) == pytest.approx(inches * 72, abs=0.1)
        assert float(box[2]) == pytest.approx(high * UNIT, abs=0.1)
        assert b"/FontFile" in pdf
        tall, broad, _ = pixels((tmp_path / f"{key}.png").read_bytes()).shape
        assert broad == pytest.approx(inches * DPI, abs=1)
        assert tall == pytest.approx(high * UNIT * DPI / 72, abs=2)


def test_letters_have_the_same_size_in_a_wider_picture_and_can_be_read(audit):
    for figure in figures(audit):
        narrow, wide = (
            {
                float(size) * UNIT
                for size in re.findall(r'font-size="([\d.]+)px"', draw(figure, width))
            }
            for width in WIDTHS.values()
        )
        assert narrow == wide
        assert min(narrow) >= 7  # points
        assert "scale(" not in draw(figure)


def test_a_bare_picture_has_its_words_beside_it(audit, tmp_path):
    made = figures(audit)
    made[0] = replace(made[0], notes=["seeds 0, 1"])
    paths = export(made, tmp_path, ("svg",), bare=True)
    assert len(paths) == 2 * len(made)
    for figure in made:
        told = letters((tmp_path / f"{figure.key}.svg").read_text("utf-8"))
        assert figure.title not in told
        assert figure.n not in told
        caption = (tmp_path / f"{figure.key}.txt").read_text("utf-8")
        for text in (figure.title, figure.n, figure.caption, *figure.notes):
            assert text in caption
        assert caption.count("\n") == 1
    assert "Note: " in (tmp_path / f"{made[0].key}.txt").read_text("utf-8")


def test_the_command_takes_a_width_and_leaves_the_words_out(heedmap, folder, tmp_path):
    options = ("--only", TWO[0], "--format", "svg", "--out", tmp_path / "p", "--bare")
    done = heedmap("figures", folder, *options, "--width", "120mm")
    assert done.code == 0, done.err
    assert f"Caption: {tmp_path / 'p' / TWO[0]}.txt" in done.out
    root = ElementTree.parse(tmp_path / "p" / f"{TWO[0]}.svg").getroot()
    assert float(root.attrib["width"]) * UNIT == pytest.approx(120 / INCH * 72, abs=0.01)


def test_a_picture_says_what_the_page_says(audit):
    for figure in figures(audit):
        told = letters(draw(figure)).replace("\n", " ")
        for text in (figure.title, figure.n, *(k.label for k in figure.keys), *figure.notes):
            for word in text.split():
                assert word in told, (figure.key, word)


@pytest.mark.parametrize("form", ["svg", "png"])
def test_the_same_figure_gives_the_same_bytes_in_any_order(audit, form):
    made = figures(audit)
    first = {f.key: render(f, form) for f in made[:3]}
    for figure in reversed(made[:3]):
        assert render(figure, form) == first[figure.key]


def test_nothing_is_cut_off(audit):
    """White to the edges, whatever the classes are called."""
    long = Key("predicted " + "interminable " * 12 + "x" * 120 + " (n = 12)", PALETTE[0])
    crowded = [
        Figure(f.key, f.title + " and so on" * 9, f.n, f.caption, f.spec, [*f.keys, long], f.notes)
        for f in figures(audit)
        if f.key in ("permutation", "rationale")
    ]
    for figure in [*crowded, *figures(audit)]:
        image = pixels(render(figure, "png"))
        for edge in (image[:, :6], image[:, -6:], image[:6], image[-6:]):
            assert (edge == 255).all(), figure.key


def test_lines_fit_and_lose_nothing():
    text = "a very long heading of a figure " + "w" * 70 + " 日本語のラベル"
    for width in (40, 90, 300):
        broken = wrapped(text, width, 10)
        assert max(map(cell_len, broken)) * ADVANCE * 10 <= width
        assert "".join(broken).replace(" ", "") == text.replace(" ", "")


def test_letters_are_no_wider_than_they_are_taken_to_be():
    text = "The quick brown fox jumps over 1,234 lazy dogs (n = 56, mean −0.78) at ε ≤ 0.01"
    svg = (
        '<svg xmlns="http://www.w3.org/2000/svg" width="600" height="20"><rect width="600" height="20" '
        f'fill="white"/><text y="14" font-family="Liberation Sans" font-size="10px">{text}</text></svg>'
    )
    import vl_convert

    ink = (pixels(vl_convert.svg_to_png(svg)) < 200).any(axis=(0, 2))
    assert int(np.flatnonzero(ink).max()) <= ADVANCE * 10 * len(text)


def test_bad_tokens_in_names_do_no_harm():
    svg = draw(figures(make_audit(classes=3))[0])
    assert "predicted a<b" in letters(svg)
    evil = Figure("k", "<script>alert(1)</script>\x1b[31m", "n = 1 text", "c.", {**BARE}, [])
    root = ElementTree.fromstring(draw(evil))
    assert not [e for e in root.iter() if e.tag.endswith("script")]


BARE = {
    "data": {"values": [{"x": 1}]}, "mark": "point", "width": "container", "height": 50,
    "encoding": {"x": {"field": "x", "type": "quantitative"}},
}  # fmt: skip


def test_the_command_writes_every_figure_beside_the_run(heedmap, folder, audit):
    done = heedmap("figures", folder, "--format", "svg")
    assert done.code == 0, done.err
    keys = [f.key for f in figures(audit)]
    assert {p.name for p in (folder / "figures").iterdir()} == {f"{key}.svg" for key in keys}
    assert done.out.count("Figure: ") == len(keys)


def test_the_command_chooses_and_lists(heedmap, folder, tmp_path, audit):
    listed = heedmap("figures", folder, "--list")
    assert listed.code == 0
    assert [line.split()[0] for line in listed.out.splitlines()] == [f.key for f in figures(audit)]
    assert "n = 30 texts" in listed.out
    out = tmp_path / "paper"
    done = heedmap("figures", folder, "--only", ",".join(TWO), "--format", "svg, pdf", "--out", out)
    assert done.code == 0, done.err
    names = {f"{key}.{ending}" for key in TWO for ending in ("svg", "pdf")}
    assert {p.name for p in out.iterdir()} == {"manifest.json", *names}
    assert not (folder / "figures").exists()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--only", "nothing-such"), ["figure 'nothing-such'"]),
        (("--only", "tau-gradient,nope"), ["figure 'nope'"]),
        (("--only", ","), ["a name"]),
        (("--format", "html"), ["format 'html'", "pdf, svg, png"]),
        (("--format", ""), ["a name"]),
        (("--list", "--only", "nope"), ["figure 'nope'"]),
        (("--width", "wide"), ["--width", "column, page or millimetres", "'wide'"]),
        (("--width", "8"), ["width", "50 to 400 mm", "8", "84", "178"]),
        (("--width", "nan"), ["width", "50 to 400 mm", "nan"]),
    ],
)
def test_bad_options_are_one_line_and_write_nothing(heedmap, folder, options, named):
    done = heedmap("figures", folder, *options)
    stopped(done, *named)
    assert len(done.err.strip().splitlines()) == 1
    assert not (folder / "figures").exists()


def test_a_run_that_is_not_audited_has_no_figures(heedmap, folder, tmp_path):
    (folder / "tables" / "about.json").unlink()
    for place, named in ((folder, "heedmap audit"), (tmp_path / "none", "settings.toml")):
        done = heedmap("figures", place)
        stopped(done, place, named)
        assert len(done.err.strip().splitlines()) == 1


def test_a_place_that_cannot_be_written_is_one_line(heedmap, folder, tmp_path):
    (tmp_path / "file").write_text("mine")
    done = heedmap("figures", folder, "--only", "curve", "--out", tmp_path / "file")
    assert done.code == 2
    assert (tmp_path / "file").read_text() == "mine"


def test_an_audit_without_figures_says_so(tmp_path):
    with refused("no figure"):
        export(figures(make_audit(n=2, lengths=(1,))), tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_without_memory_the_figures_are_refused_in_one_line(tmp_path):
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "import resource\n"
        "from made_audits import make_audit\n"
        "from heedmap.report.export import export\n"
        "from heedmap.report.figures import figures\n"
        "made = figures(make_audit())[:1]\n"
        "resource.setrlimit(resource.RLIMIT_AS, (16 << 30, 16 << 30))\n"
        "export(made, sys.argv[2])\n"
    )
    here = Path(__file__).parent
    command = [sys.executable, "-c", script, here, tmp_path / "figures"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "InputError: the figures cannot be drawn" in done.stderr.splitlines()[-1]
    assert not (tmp_path / "figures").exists()


def test_a_users_own_file_is_not_replaced_by_a_figure_of_its_name(audit, tmp_path):
    (tmp_path / f"{TWO[0]}.svg").write_text("mine")
    with refused(f"{TWO[0]}.svg", "a file"):
        export(figures(audit), tmp_path, ("svg",), TWO)
    assert [p.name for p in tmp_path.iterdir()] == [f"{TWO[0]}.svg"]
    (tmp_path / f"{TWO[0]}.svg").unlink()
    for _ in range(2):
        export(figures(audit), tmp_path, ("svg",), TWO)
