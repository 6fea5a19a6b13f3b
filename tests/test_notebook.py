"""What a person has of an audit in a notebook: tables and figures by name, and the report in a frame."""

import altair as alt
import pytest
from made_audits import Elements, make_audit

from heedmap.errors import InputError
from heedmap.experiments.finding_tables import COLUMNS
from heedmap.report.figures import figures
from heedmap.report.notebook_charts import chart
from heedmap.report.page import page


@pytest.fixture(scope="module")
def audit():
    return make_audit(classes=3)


def test_a_table_is_there_by_name(audit):
    assert list(audit) == list(audit.tables) == audit._ipython_key_completions_()
    assert "adversary" in audit
    assert "nothing" not in audit
    frame = audit["adversary"]
    assert len(frame) == 40
    assert frame.equals(audit.to_dataframe("adversary"))


@pytest.mark.parametrize("error", [InputError, KeyError])
def test_a_name_that_there_is_not_is_answered_with_those_there_are(audit, error):
    with pytest.raises(error) as caught:
        audit["nothing"]
    assert str(caught.value) == f"no table 'nothing'; there are {', '.join(audit.tables)}"
    with pytest.raises(error) as caught:
        audit.figures["nothing"]
    assert str(caught.value) == f"no figure 'nothing'; there are {', '.join(audit.figures)}"
    assert audit.figures.get("nothing") is None


def test_findings_are_a_frame_with_a_row_each(audit):
    frame = audit.to_dataframe()
    assert list(frame.columns) == [column.name for column in COLUMNS.described]
    assert frame["key"].to_list() == [f.key for f in audit.findings]
    for row, finding in zip(frame.to_dict("records"), audit.findings, strict=True):
        assert row["left_out"] == sum(finding.left_out.values())
        assert row["n"] == finding.n
        relative = finding.relative
        assert (row["share"] == relative.share) if relative else row["share"] != row["share"]
    assert frame["left_out"].max() > 0


def test_every_column_is_described_with_its_type(audit):
    frame = audit.columns
    assert list(zip(frame["table"], frame["column"], strict=True)) == [
        (name, column) for name, table in audit.tables.items() for column in table.column_names
    ]
    assert (frame["meaning"] != "").all()
    types = frame.set_index(["table", "column"])["type"]
    assert types["instances", "attention"] == "list of number"
    assert types["adversary", "search_found"] == "true or false"


def test_figures_are_those_of_the_report_by_name(audit):
    made = figures(audit)
    assert list(audit.figures) == [figure.key for figure in made]
    assert audit.figures._ipython_key_completions_() == list(audit.figures)
    assert len(repr(audit.figures).splitlines()) == 1 + len(made)
    assert all(figure.title in repr(audit.figures) for figure in made)


def test_a_figure_is_a_chart_with_title_n_and_legend_that_needs_no_network(audit):
    figure = next(f for f in figures(audit) if f.key == "permutation")
    drawn = audit.figures["permutation"]
    assert isinstance(drawn.properties(title="mine"), alt.LayerChart)
    shown = drawn._repr_mimebundle_()
    shown = shown[0] if isinstance(shown, tuple) else shown
    assert set(shown) == {"image/svg+xml"}
    text = " ".join(Elements(shown["image/svg+xml"]).text)
    assert figure.title in text
    assert figure.n in text
    for key in figure.keys:
        assert key.label in text
    with alt.renderers.enable("mimetype"):
        other = drawn._repr_mimebundle_()
    assert any("vegalite" in kind for kind in (other[0] if isinstance(other, tuple) else other))
    assert alt.renderers.active == "default"


def test_every_figure_is_a_valid_chart(audit):
    for figure in figures(audit):
        made = chart(figure).to_dict()
        assert made["description"] == figure.caption
        assert "config" in made


def test_the_report_is_a_frame_without_the_notebooks_origin(audit):
    shown = audit.page()
    assert len(repr(shown)) < 200
    (frame,) = Elements(shown._repr_html_()).found
    tag, attributes = frame
    assert tag == "iframe"
    assert attributes["sandbox"] == "allow-scripts"
    assert attributes["srcdoc"].replace('<base href="about:srcdoc">', "") == page(audit)
    # Before the policy, which forbids a base that comes later.
    assert attributes["srcdoc"].index("<base") < attributes["srcdoc"].index("base-uri")


@pytest.mark.slow
def test_a_notebook_shows_what_it_is_given(tmp_path, monkeypatch):
    nbformat, nbclient = (pytest.importorskip(name) for name in ("nbformat", "nbclient"))
    pytest.importorskip("ipykernel")
    monkeypatch.chdir(tmp_path)
    cells = [
        "import heedmap as hm\ncorpus = hm.load('reviews')\ncorpus",
        "run = hm.train(corpus, encoder='average', embedding_size=8, epochs=1)\nrun",
        "audit = hm.audit(run, instances=20, permutations=3)\naudit",
        "audit.findings[0]",
        "audit.figures['permutation']",
        "audit.page()",
    ]
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    nbclient.NotebookClient(notebook, timeout=300).execute()
    shown = [
        cell.outputs[-1]["data"]  # the bar, which is gone, comes first
        for cell in notebook.cells
    ]
    said = [output for cell in notebook.cells for output in cell.outputs]
    assert not [output.text for output in said if output.output_type == "stream"]
    starts = ["Corpus reviews", "Run reviews", "Audit of reviews", "<Finding skill", "", "<Page"]
    for data, start in zip(shown, starts, strict=True):
        assert data["text/plain"].startswith(start)
        assert "image/svg+xml" in data if start == "" else "text/html" in data
