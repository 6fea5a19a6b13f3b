"""Every column of a table is described where the table is made, and no description is left over.

That no column goes undescribed is asked of every table that any test makes (`conftest.described`).
"""

import re
import runpy
from collections import defaultdict
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from conftest import random_pairs, random_sentences, random_texts, small_model
from making import SETTINGS, left_over
from pair_transformers import pair_classifier, texts_of
from tiny_askers import MASKED, TAGGED, on_trial
from tiny_regressions import number_model
from tiny_transformers import TEXTS, tiny_classifier
from tiny_vision import saved_pictures, saved_vision

import heedmap as hm
from heedmap.data.corpus import Split
from heedmap.experiments.columns import Columns
from heedmap.experiments.context import AuditContext
from heedmap.experiments.registry import applicable, registered, retrains
from heedmap.models.hierarchical_classifier import HierarchicalClassifier
from heedmap.models.pair_classifier import PairClassifier

ROOT = Path(__file__).parents[1]
QUICK = SETTINGS.model_copy(
    update={"integrated_gradients_steps": 2, "search_restarts": 1, "search_steps": 2, "descent_steps": 2}
)  # fmt: skip


def split_of(tokens, **more):
    return Split([str(i) for i in range(len(tokens))], tokens, np.arange(len(tokens)) % 2, **more)


def marked(tokens):
    return [np.arange(len(text)) == 0 for text in tokens]


def audits(folder):
    """Models and texts of each kind, with the settings that decide which columns there are."""
    texts = random_texts([3, 5, 8, 1])
    sparse = {"normaliser": "sparsemax", "encoder": "average"}
    for how in ("scale", "again"):
        settings = QUICK.model_copy(update={"renormalise": how})
        split = split_of(texts, rationale=marked(texts), text_of=np.array([0, 1, 1, 2]))
        other = small_model(**sparse, seed=1)
        yield AuditContext(
            small_model(**sparse), split, settings, registered(), other_seeds={"seed_1": other}
        )
    pairs = random_pairs([3, 5, 8], classes=2)
    queries = split_of(
        [one.tokens for one in pairs], queries=[one.query for one in pairs],
        allowed=np.ones((3, 2), dtype=bool),
    )  # fmt: skip
    yield AuditContext(
        small_model(kind=PairClassifier, encoder="average"), queries, QUICK, registered()
    )
    sentences = split_of(random_sentences([2, 3]))
    yield AuditContext(
        small_model(kind=HierarchicalClassifier, encoder="average"), sentences, QUICK, registered()
    )
    yield AuditContext(tiny_classifier(), split_of(TEXTS), QUICK, registered())
    pairs = texts_of("both")
    split = split_of([list(p) for p in pairs], seconds=np.array([p.second for p in pairs]))
    yield AuditContext(pair_classifier(), split, QUICK, registered())
    asking = split_of([list(t) for t in TAGGED], targets=np.array([t.target for t in TAGGED]))
    yield AuditContext(on_trial("bert", of_masks=False), asking, QUICK, registered())
    run = hm.open_model(
        saved_vision(folder / "model"), saved_pictures(folder / "data", per_class=1), progress=False
    )
    yield AuditContext(run.model, run.corpus.splits["test"], QUICK, registered())


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Every table of these audits, by name."""
    found = defaultdict(list)
    for evidence in audits(tmp_path_factory.mktemp("audits")):
        for name in applicable(evidence.model, evidence.split, compared=bool(evidence.other_seeds)):
            found[name].append(evidence.table(name))
    rated = split_of(TEXTS, amounts=np.array([0.5, 1.0, 2.0]))
    of_number = AuditContext(number_model(), rated, QUICK, registered())
    # Of a number other columns of it are distances, which have no range.
    found["highlights"].append(of_number.table("highlights").select(["row", "above"]))
    found["instances"].append(of_number.table("instances"))
    hiding = split_of(
        [list(t) for t in MASKED], targets=np.array([t.target for t in MASKED]),
        choices=[t.choices for t in MASKED],
    )  # fmt: skip
    of_masks = AuditContext(on_trial("bert", of_masks=True), hiding, QUICK, registered())
    found["instances"].append(of_masks.table("instances"))
    return found


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_every_description_of_an_audits_tables_is_of_a_column_that_there_is(tables):
    assert set(tables) == {name for name in registered() if not retrains(name)} - {"dynamics"}
    assert not left_over(
        {name: {c for one in some for c in one.column_names} for name, some in tables.items()}
    )


def numbers(column):
    """The numbers of a column, those of lists too, without null and NaN."""
    values = column.combine_chunks()
    while pa.types.is_list(values.type):
        values = values.flatten()
    found = values.drop_null().to_numpy(zero_copy_only=False).astype(np.float64)
    return found[~np.isnan(found)]


ENDS = {"0": 0.0, "1": 1.0, "−1": -1.0, "ln 2": np.log(2)}
RANGE = re.compile(r"(−?\d) to (ln 2|−?\d)")


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::UserWarning")
def test_numbers_lie_in_their_range(tables):
    asked = 0
    for name, some in tables.items():
        columns = registered()[name].columns
        for table in some:
            for column in table.column_names:
                said = columns.of(column).range
                if found := RANGE.search(said):
                    low, high = (ENDS[end] for end in found.groups())
                elif "from 0" in said or said.startswith("count"):
                    low, high = 0.0, np.inf
                elif said == "0 or 1":
                    assert set(numbers(table[column])) <= {0.0, 1.0}, (name, column)
                    continue
                else:
                    continue
                values = numbers(table[column])
                asked += len(values) > 0
                assert (values >= low - 1e-6).all(), (name, column, values.min())
                assert (values <= high + 1e-6).all(), (name, column, values.max())
    assert asked > 300


def test_a_family_says_of_each_member_what_it_is():
    columns = Columns(
        "One row per text.",
        {
            "tau_{measure}": ("−1 to 1", "tau with {measure}"),
            "share_{kind}": ("0 to 1", "on {kind}"),
        },
        measure={"leave_one_out": "leave-one-out", "gradient": "the gradient"},
    )
    assert [name for name, _ in columns] == ["tau_leave_one_out", "tau_gradient", "share_{kind}"]
    assert columns.of("tau_leave_one_out").meaning == "tau with leave-one-out"
    assert columns.of("share_[CLS]").meaning == "on [CLS]"
    assert columns.of("tau_integrated_gradients") is None
    assert columns.of("xtau_gradient") is None


NAMED_BY_THE_RUN = ("share_{kind}", "attention_{training}")


def test_ours_are_all_described_with_range_and_meaning():
    for name, experiment in registered().items():
        assert experiment.columns.rows.startswith("One row per "), name
        for known, column in experiment.columns:
            assert column.range, (name, known)
            assert column.meaning, (name, known)
            assert "\n" not in column.meaning

            assert (
                known in NAMED_BY_THE_RUN or "{" not in f"{known}{column.range}{column.meaning}"
            ), name


def test_the_page_of_columns_is_that_of_the_experiments():
    page = runpy.run_path(str(ROOT / "scripts" / "columns_page.py"))["page"]()
    assert (ROOT / "docs" / "columns.md").read_text(encoding="utf-8") == page, (
        "make it again: python scripts/columns_page.py"
    )


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (pa.float32(), "number"), (pa.int8(), "integer"), (pa.bool_(), "true or false"),
        (pa.string(), "text"), (pa.list_(pa.list_(pa.float64())), "list of list of number"),
    ],
)  # fmt: skip
def test_types_are_words(kind, words):
    from heedmap.experiments.columns import type_of

    assert type_of(kind) == words
