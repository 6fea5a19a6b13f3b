"""The whole pipeline on real data, where available: the shapes of the published numbers."""

import numpy as np
import pytest

import heedmap as hm
from heedmap.experiments.context import AuditContext
from heedmap.experiments.registry import registered
from heedmap.settings.audit import AuditSettings

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def sst(real_data):
    """Jain & Wallace's SST: their text, tokens and filter."""
    corpus = hm.load(real_data / "sst", text="jw_text", tokenizer="spaces", min_tokens=6)
    vectors = real_data / "glove_6B_50d_subset" / "vectors.txt.gz"
    return hm.audit(hm.train(corpus, vectors=vectors, epochs=4, min_df=1))


@pytest.mark.exhaustive
def test_the_splits_are_those_of_the_paper(sst):
    # The released code drops the longest text of each split besides: 6355, 821, 1725.
    assert [len(s) for s in sst.run.corpus.splits.values()] == [6356, 822, 1726]


def test_the_model_is_about_as_good_as_the_papers(sst):
    skill = next(f for f in sst.findings if f.key == "skill")
    assert 0.76 < skill.value < 0.86  # .81 in the authors' files


def test_attention_agrees_only_weakly_and_adversaries_are_everywhere(sst):
    by_key = {f.key: f for f in sst.findings}
    assert 0.1 < by_key["agreement_leave_one_out"].value < 0.6
    gradient, yardstick = by_key["agreement_gradient"].value, by_key["agreement_yardstick"].value
    assert 0.2 < gradient < 0.65
    assert yardstick > by_key["agreement_leave_one_out"].value
    assert by_key["adversary"].value * np.log(2) > 0.5


def test_how_texts_are_batched_does_not_move_the_ranks(sst):
    model, sixty = sst.run.model, sst.run.corpus.splits["test"].take(range(60))
    tables = []
    at_once = model.tokens_at_once
    try:
        for tokens in (at_once, 512, 64):
            model.tokens_at_once = tokens
            tables.append(
                AuditContext(model, sixty, AuditSettings(), registered()).table("agreement")
            )
    finally:
        model.tokens_at_once = at_once
    first, *others = tables
    assert all(table.equals(first) for table in others)


def test_the_exact_adversary_is_at_least_the_searchs_on_every_instance(sst):
    frame = sst.to_dataframe("adversary")
    assert (frame["jsd"] >= frame["search_jsd"] - 1e-5).all()
    assert frame["jsd"].mean() > frame["search_jsd"].mean() + 0.05


@pytest.mark.parametrize(
    "name", ["sst", "news20_baseball_hockey", "imdb", "ag_news", "eraser_movies"]
)
@pytest.mark.filterwarnings("ignore:.*HTML in")
def test_every_real_set_is_read(real_data, name):
    corpus = hm.load(real_data / name)
    assert all(len(split) > 100 for split in corpus.splits.values())
