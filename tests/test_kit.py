"""Shared by all reproductions: the registry, the cells, the result files and the figures."""

import csv
import io
import os
import re
import subprocess
from pathlib import Path
from shutil import which

import pytest
import torch
from conftest import watched
from made_results import result
from threadpoolctl import threadpool_info
from toy_paper import toy as toy  # noqa: PLC0414 - a fixture
from wording import refused, stopped

from heedmap.errors import InputError
from heedmap.papers import __path__ as papers
from heedmap.papers.kit.registry import names
from heedmap.papers.kit.render import FILES, csv_text, latex, markdown, page, terminal, write
from heedmap.papers.kit.result import Table, unfinished, unlike
from heedmap.terminal.output import show
from heedmap.terminal.progress import at
from heedmap.training.jobs import run_jobs


def test_the_papers_are_the_folders_of_the_package():
    folders = {path.parent.name for path in Path(papers[0]).glob("*/paper.py")}
    assert {"drozdyuk", "jain_wallace"} <= folders
    assert names() == sorted(name.replace("_", "-") for name in folders)


@pytest.mark.parametrize("arguments", [(), ("--help",)])
def test_every_paper_is_listed_with_what_it_is(heedmap, toy, arguments):
    said = heedmap("reproduce", *arguments)
    assert said.code == 0
    for name in ("drozdyuk", "jain-wallace", "toy-paper"):
        assert f"\n  {name} " in said.out
    assert "Squares are not explanations." in said.out


@pytest.mark.parametrize("name", ["jain-walace", "jain", "Wallace"])
def test_a_paper_that_is_not_there_is_one_line_with_a_near_one(heedmap, name):
    said = heedmap("reproduce", name)
    assert said.code == 2
    assert said.err.startswith(f"heedmap: No such command '{name}'. Did you mean 'jain-wallace'?")


def test_a_new_paper_has_a_command_a_result_and_figures_and_resumes(heedmap, toy, tmp_path):
    out = tmp_path / "out"
    arguments = ("reproduce", "toy-paper", "--out", out, "--scale", "2")
    said = heedmap(*arguments)
    assert said.code == 0, said.err
    for words in (
        "Unlike the paper: scaled by 2 instead of 1.",
        "Claim: Squares grow",
        "SURVIVES",
        "result.md",
    ):
        assert words in said.out
    assert set(FILES) < {path.name for path in out.iterdir()}
    before = {path: (path.stat().st_mtime_ns, path.read_bytes()) for path in out.rglob("*.parquet")}
    assert len(before) == 2
    assert heedmap(*arguments).code == 0
    assert before == {p: (p.stat().st_mtime_ns, p.read_bytes()) for p in before}
    other = heedmap(*arguments, "--seeds", "3")
    assert (other.code, other.err.count("\n")) == (2, 1)
    stopped(other, out, "seeds: 2 -> 3", "--overwrite")
    assert "squares  Squares (n = 2 runs" in heedmap("figures", out, "--list").out
    damaged = out / "parts" / "1.parquet"
    damaged.write_bytes(damaged.read_bytes()[:40])
    for command in (arguments, ("figures", out, "--list")):
        said = heedmap(*command)
        assert said.err.splitlines()[-1].startswith("heedmap: ")
        stopped(said, damaged, "manifest.json")
    for path in (out / "parts").iterdir():
        path.unlink()
    nothing = heedmap("figures", out, "--list")
    assert (nothing.code, nothing.err.count("\n")) == (2, 1)


class Kept:
    """Runs cells one after another, and keeps what comes of them."""

    def __init__(self):
        self.found, self.said, self.threads = [], [], []

    def run(self, cell):
        at(1, 2, "half")
        self.threads.append(
            (torch.get_num_threads(), *(x["num_threads"] for x in threadpool_info()))
        )
        if cell == "wrong":
            raise InputError("expected this, got that")
        if cell == "stop":
            raise KeyboardInterrupt
        return cell.upper()

    def __call__(self, *cells, workers=1, finished=()):
        with watched(lambda *at: self.said.append(at)):
            run_jobs(
                cells, self.run, lambda *pair: self.found.append(pair), folder=Path("nowhere"), workers=workers,
                is_finished=lambda cell: cell in finished,
            )  # fmt: skip


def test_each_cell_is_run_once_in_order_and_counted():
    kept = Kept()
    kept("a", "b")
    assert kept.found == [("a", "A"), ("b", "B")]
    assert [(done, text) for done, text in kept.said if text] == [
        (0, "a"),
        (0.25, "a, half"),
        (0.5, "b"),
        (0.75, "b, half"),
    ]
    assert kept.said[-1] == (1, "")


def test_no_cells_are_no_work():
    kept = Kept()
    kept(workers=4)
    assert kept.found == []


def test_a_cell_that_is_stopped_leaves_those_before_it():
    kept = Kept()
    with pytest.raises(KeyboardInterrupt):
        kept("a", "stop", "c")
    assert kept.found == [("a", "A")]


def test_bad_input_of_a_cell_has_its_name():
    with pytest.raises(InputError, match=r"^wrong: expected this, got that$"):
        Kept()("a", "wrong")


@pytest.mark.parametrize(("cells", "finished"), [("a", ""), ("ab", "a"), ("ab", "ab")])
def test_no_worker_is_started_for_one_cell_to_make(monkeypatch, cells, finished):
    monkeypatch.setattr("heedmap.training.jobs.sweep", pytest.fail)
    kept = Kept()
    kept(*cells, workers=2, finished=finished)
    assert kept.found == [(cell, cell.upper()) for cell in cells]


def test_cells_of_this_process_have_one_thread_as_those_of_workers_have(monkeypatch):
    monkeypatch.setenv("MKL_NUM_THREADS", "7")
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    try:
        kept = Kept()
        kept("a")
        assert {count for counts in kept.threads for count in counts} == {1}
        assert (torch.get_num_threads(), os.environ["MKL_NUM_THREADS"]) == (2, "7")
    finally:
        torch.set_num_threads(before)


def test_fewer_workers_than_one_are_refused(heedmap, csv_file, tmp_path):
    for paper in ("drozdyuk", "jain-wallace babi_qa1"):
        said = heedmap(
            "reproduce",
            *paper.split(),
            "--data",
            csv_file,
            "--workers",
            "0",
            "--out",
            tmp_path / "out",
        )
        assert said.err.count("\n") == 1
        stopped(said, "workers", "1", "0")
    assert not (tmp_path / "out").exists()


def test_a_negative_number_has_a_minus_in_the_terminal(capsys):
    line = ["a -1", "-0.033 [-0.1, 1e-05]"]
    show(*terminal(result(summary=Table("", ["model", "number"], [line]))), width=80)
    assert re.search(r"a -1 +−0\.033 \[−0\.1, 1e-05\]", capsys.readouterr().out)


def test_a_negative_number_has_a_minus_on_the_page():
    html = page(result())
    assert "<td>0.25 [−0.10, 0.60]</td>" in html
    assert "[-0.10" not in html


def test_markdown_has_labels_on_the_left_and_numbers_on_the_right():
    assert markdown(result()) == "\n\n".join(
        [
            "# A & B", "A note.", "Unlike the paper: 1 epoch instead of 8.", "† Not c.", "## Numbers",
            "| name | theirs | ours |\n| --- | ---: | ---: |\n| a\\|b | 1 | 0.25 [-0.10, 0.60] |\n"
            "| [c] † | −30.5 |  |",
            "How to read. †: not learned, see the notes.", "## Claim: It holds", "**Does not.** By texts.",
            "* 1 of 2\n* x \\< y", "## Columns of result.csv",
            "| column | what it holds |\n| --- | --- |\n| name | the name |\n| value | the value |\n"
            "| n | the n |\n| none | the none |\n",
        ]
    )  # fmt: skip


def test_csv_has_every_digit_and_nothing_where_there_is_no_number():
    said = csv_text(result())
    assert said == "name,value,n,none\na|b,0.30000000000000004,1,\nc\\n,,2,\n"
    rows = list(csv.DictReader(io.StringIO(said)))
    assert float(rows[0]["value"]) == 0.1 + 0.2


def test_latex_is_comments_and_one_table_whose_numbers_meet_at_the_point():
    assert latex(result()).splitlines() == [
        "% A note.", "% Unlike the paper: 1 epoch instead of 8.", "% † Not c.",
        "% Packages: booktabs; longtable for more lines than a page has.",
        r"\begin{table}", r"\centering", r"\footnotesize\setlength{\tabcolsep}{3pt}",
        r"\caption{Numbers. How to read. $^\dagger$ Not c.}", r"\label{tab:a-b}",
        r"\begin{tabular}{lr@{}lr@{}l}", r"\toprule",
        r"name & \multicolumn{2}{c}{theirs} & \multicolumn{2}{c}{ours} \\", r"\midrule",
        r"a\textbar{}b & 1 &  & 0 & .25 [$-$0.10, 0.60] \\",
        r"{}[c] $^\dagger$ & $-$30 & .5 & \multicolumn{2}{c}{} \\", r"\bottomrule", r"\end{tabular}",
        r"\end{table}",
    ]  # fmt: skip


def test_what_is_no_number_stands_across_and_what_pdflatex_does_not_know_is_named():
    lines = [[name, value] for name, value in (("中", "1e-05"), ("b", "–"), ("c", "12/3"))]
    text = latex(result(latex=Table("Numbers", ["name", "a very long head"], lines)))
    assert "% Not for pdflatex, for lualatex: 中" in text
    assert r"\multicolumn{2}{c}{1e-05}" in text
    assert r"\multicolumn{2}{c}{--}" in text
    assert "12 & /3" in text
    assert r"\shortstack{a very long \\{} head}" in text


def test_a_table_longer_than_a_page_goes_over_pages_with_its_heads():
    lines = [[f"m{i}", str(i / 8)] for i in range(50)]
    text = latex(result(latex=Table("Numbers", ["name", "n"], lines, "How.")))
    assert text.count(r"\begin{longtable}") == text.count(r"\endlastfoot") == 1
    assert r"\caption[]{Numbers, continued}" in text


@pytest.mark.skipif(which("pdflatex") is None, reason="no pdflatex on this machine")
@pytest.mark.parametrize("lines", [3, 60])
def test_pdflatex_compiles_it(tmp_path, lines):
    rows = [["[α] & 5 %_#", f"{i / 7:.3f} [-0.1, 0.2]"] for i in range(lines)]
    table = Table("λ ≥ ½ \\input{x}", ["name", "softmax [S4] of all"], rows, "τ-b − †.")
    (tmp_path / "result.tex").write_text(latex(result(latex=table)), encoding="utf-8")
    (tmp_path / "all.tex").write_text(
        r"\documentclass{article}\usepackage{booktabs,longtable}"
        r"\begin{document}\input{result}\end{document}"
    )
    command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "all.tex"]
    done = subprocess.run(
        command,
        check=False,
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
        text=True,
        errors="replace",
    )
    assert done.returncode == 0, done.stdout[-800:]


@pytest.mark.parametrize(
    ("heads", "lines"),
    [(["a", ""], []), (["a", "a"], []), (["a", "b"], [["1"]])],
)
def test_every_column_has_a_name_of_its_own_and_every_line_all_cells(heads, lines):
    with refused("Numbers: ", kind=ValueError):
        Table("Numbers", heads, lines)


def test_every_column_of_the_csv_file_is_explained():
    with refused("['none']", kind=ValueError):
        result(columns={"name": "", "value": "", "n": ""})


def test_a_page_links_to_the_models_reports_where_there_are_any():
    plain = page(result())
    assert "<h3>Claim: It holds</h3>" in plain
    assert "<li>x &lt; y</li>" in plain
    assert "#models" not in plain
    linked = page(result(reports=[("SST", [("lstm, seed 0", "sst/lstm-0/report.html")])]))
    assert '<a href="sst/lstm-0/report.html">lstm, seed 0</a>' in linked
    assert 'id="models"' in linked


def test_the_same_result_gives_the_same_files(tmp_path):
    for name in ("a", "b"):
        write(tmp_path / name, result())
    for name in FILES:
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()


def test_nothing_is_said_of_what_does_not_differ_and_is_not_missing():
    assert unlike([]) == unfinished(0) == ""
    assert unfinished(1) == "Not finished: 1 model is still to be run."


def test_figures_of_a_run_import_no_paper(heedmap, tmp_path, monkeypatch):
    monkeypatch.setattr("heedmap.papers.kit.registry.paper", pytest.fail)
    assert heedmap("figures", tmp_path, "--list").code == 2
