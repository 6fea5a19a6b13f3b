"""What is left of the weights: scaled, or normalised again from the scores of the shorter text."""

from dataclasses import replace
from itertools import combinations, product

import numpy as np
import pytest
import torch
from conftest import random_pairs, random_sentences, random_texts, small_model
from making import evidence_of
from tiny_transformers import tiny_classifier
from wording import refused

from heedmap.experiments.methods import erasure_predictions as erased
from heedmap.experiments.questions import eraser
from heedmap.experiments.questions.eraser import counts_of
from heedmap.experiments.registry import make_findings
from heedmap.models.attention_classifier import TextClassifier
from heedmap.models.hierarchical_classifier import HierarchicalClassifier
from heedmap.models.normalisers import normalise
from heedmap.models.pair_classifier import PairClassifier
from heedmap.models.trace import Trace
from heedmap.settings.audit import AuditSettings

ERASED = ("erasure", "decision_flip", "decision_flips")
AGAIN = AuditSettings(renormalise="again", search_instances=12)
SCALE = AuditSettings(search_instances=12)
SPARSE = pytest.mark.parametrize("normaliser", ["sparsemax", "entmax15"])
LENGTHS = [1, 2, 3, 4, 5, 5, 7]
TIED = [["w01"] * 3, ["w01", "w02", "w01", "w02", "w03"], ["w05"] * 2]  # equal words, equal scores


def held(normaliser, settings=AGAIN, kind=TextClassifier):
    """AuditContext of a small model whose scores differ enough for a sparse normaliser to leave words out."""
    model = small_model("average", normaliser=normaliser, classes=3, kind=kind)
    texts = [*random_texts(LENGTHS), *TIED]
    if kind is PairClassifier:
        texts = random_pairs(LENGTHS, 3)
    elif kind is HierarchicalClassifier:
        texts = random_sentences(LENGTHS)
    for parameter in model.score.parameters():
        parameter.mul_(6.0)
    return evidence_of(model, texts, settings)


def shortened(trace, i, kept):
    """Logits of a text of a linear model from the scores of some of its tokens, the obvious way."""
    bias = trace.readout.bias.double()
    if not len(kept):
        return bias
    scores = trace.scores[i, 0, kept].double().unsqueeze(0)
    weights = normalise(scores, torch.ones_like(scores, dtype=torch.bool), trace.normaliser)
    return (weights @ trace.readout.relevance[i, 0, kept].double())[0] + bias


@SPARSE
def test_every_subset_has_the_weights_of_the_shorter_text(normaliser):
    evidence, zeros, sizes = held(normaliser), 0, set()
    for trace in evidence.traces:
        for i in range(len(trace.rows)):
            real = trace.mask[i].nonzero().flatten().tolist()
            zeros += int((trace.attention[i, 0, real] == 0).sum())
            subsets = [some for k in range(len(real) + 1) for some in combinations(real, k)]
            kept = torch.zeros(len(subsets), *trace.mask.shape, dtype=torch.bool)
            for row, some in zip(kept, subsets, strict=True):
                row[i, list(some)] = True
            logits = erased.imposed(evidence.model, trace, kept, "again")[:, i]
            for found, some in zip(logits, subsets, strict=True):
                torch.testing.assert_close(
                    found, shortened(trace, i, list(some)), atol=2e-5, rtol=1e-4
                )
            sizes.add(len(real))
    assert zeros, "the normaliser left words out"
    assert {1, 2, 3} <= sizes


@SPARSE
@pytest.mark.parametrize("kind", [TextClassifier, HierarchicalClassifier, PairClassifier])
def test_all_single_erasures_at_once_are_those_of_one_after_the_other(normaliser, kind):
    evidence = held(normaliser, kind=kind)
    for trace in erased.traces_of(evidence):
        found = erased.without_each(evidence.model, trace, "again")
        for place in range(trace.mask.shape[1]):
            kept = trace.mask.clone().unsqueeze(0)
            kept[:, :, place] = False
            one = erased.imposed(evidence.model, trace, kept, "again")[0]
            real = trace.mask[:, place]
            torch.testing.assert_close(found[real, place], one[real], atol=2e-5, rtol=1e-4)


@SPARSE
def test_along_a_ranking_is_one_shorter_text_after_the_other(normaliser):
    evidence, counts = held(normaliser), []
    for trace, sign in product(evidence.traces, (1, -1)):
        flip = erased.along(evidence.model, trace, sign * trace.heatmap, "again")
        for i in range(len(trace.rows)):
            real = trace.mask[i].nonzero().flatten().tolist()
            order = sorted(
                real, key=lambda t, heat=trace.heatmap[i], sign=sign: -sign * float(heat[t])
            )
            count = 0
            for k in range(len(order) - 1, 0, -1):  # the last one stays
                kept = [t for t in real if t not in order[:k]]
                if int(shortened(trace, i, kept).argmax()) != int(trace.predicted[i]):
                    count = k
            assert int(flip.count[i]) == count
            counts.append(count)
    assert len(set(counts)) > 2


@pytest.mark.parametrize("kind", [TextClassifier, HierarchicalClassifier, PairClassifier])
def test_of_a_softmax_both_are_the_same_bytes(kind):
    one, other = (held("softmax", settings, kind=kind) for settings in (SCALE, AGAIN))
    for name in ("erasure", "decision_flips", "class_erasure", "eraser"):
        assert repr(one.table(name).to_pydict()) == repr(other.table(name).to_pydict())
        assert not any(x.endswith(("_again", "_scale")) for x in one.table(name).column_names)


def test_of_a_transformer_too():
    texts = [["one", " two", " three", " four"], ["one"], [" a", " b", " c"], ["x", " y"]]
    one, other = (evidence_of(tiny_classifier(), texts, settings) for settings in (SCALE, AGAIN))
    for name in ("erasure", "decision_flips"):
        assert repr(one.table(name).to_pydict()) == repr(other.table(name).to_pydict())


@SPARSE
@pytest.mark.parametrize("kind", [TextClassifier, PairClassifier])
def test_the_other_way_is_in_the_table_too(normaliser, kind):
    scaled, again = (
        held(normaliser, settings, kind=kind).table("erasure").to_pandas()
        for settings in (SCALE, AGAIN)
    )
    for name in ("flip_top", "js_top", "above", "flips"):
        np.testing.assert_allclose(scaled[f"{name}_again"], again[name], atol=1e-6)
        np.testing.assert_allclose(again[f"{name}_scale"], scaled[name], atol=1e-6)
    assert not np.allclose(scaled.js_top.dropna(), again.js_top.dropna(), atol=1e-4), "they differ"
    assert (scaled.random == again.random)[scaled.random.notna()].all()


@SPARSE
def test_the_smallest_set_is_not_known_and_the_findings_say_so(normaliser):
    evidence = held(normaliser)
    names = ("instances", "erasure", "decision_flips", "class_erasure")
    made = {name: evidence.table(name) for name in names}
    assert made["decision_flips"]["count_exact"].null_count == len(evidence.split)
    assert made["class_erasure"]["count_exact"].null_count == made["class_erasure"].num_rows
    found = {f.key: f for f in make_findings(made, evidence.settings, ["a", "b", "c"])}
    assert "no closed form" in found["decision_flips"].meaning
    assert found["decision_flips"].relative is None
    assert "scaled to the same mass it is" in found["erasure"].meaning
    assert "class_flips" not in found
    told = "an erased word leaves are normalised again from their scores"
    assert all(told in found[key].meaning for key in ERASED if found[key].n)
    scaled = held(normaliser, SCALE)
    made = {name: scaled.table(name) for name in names}
    found = {f.key: f for f in make_findings(made, scaled.settings, ["a", "b", "c"])}
    assert "no closed form" not in found["decision_flips"].meaning
    assert "normalised again from their scores it is" in found["erasure"].meaning
    told = "an erased word leaves are scaled to the same mass"
    assert all(told in found[key].meaning for key in ERASED if found[key].n)


@SPARSE
def test_the_first_words_of_a_ranking_and_these_alone_are_shorter_texts(normaliser):
    evidence = held(normaliser)
    for trace in evidence.traces:
        counts = torch.tensor([counts_of(int(n)) for n in trace.mask.sum(-1)])
        without, alone = eraser._split(evidence, trace, trace.heatmap.double(), counts)
        order = erased.ranked(trace.heatmap, trace.mask)
        for i, size in enumerate(trace.mask.sum(-1).tolist()):
            for q, count in enumerate(counts[i].tolist()):
                first = order[i, :count].tolist()
                rest = [t for t in order[i, :size].tolist() if t not in first]
                for found, kept in ((without, rest), (alone, first)):
                    torch.testing.assert_close(
                        found[i, q], shortened(trace, i, kept), atol=2e-5, rtol=1e-4
                    )


def test_mass_that_goes_to_no_position_takes_its_part_of_what_is_erased():
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(4, 2, 5, generator=generator)
    sink = torch.zeros(4, 2, 1)
    attention = torch.cat([scores, sink], -1).softmax(-1)[..., :-1]
    mask = torch.ones(4, 5, dtype=torch.bool)
    trace = Trace(
        torch.arange(4), mask, attention, mask.unsqueeze(1).expand(-1, 2, -1),
        attention.mean(1), torch.zeros(4, 2),
    )  # fmt: skip
    kept = torch.tensor(list(np.ndindex(2, 2, 2, 2, 2)), dtype=torch.bool)
    kept = kept.unsqueeze(1).expand(-1, 4, -1)
    found = erased.left(trace, kept, "again")
    for one, some in zip(found, kept[:, 0], strict=True):
        without = torch.cat([scores.masked_fill(~some, -torch.inf), sink], -1).softmax(-1)[..., :-1]
        torch.testing.assert_close(one, without)
    scaled = erased.left(trace, kept[1:]).sum(-1)
    torch.testing.assert_close(scaled, attention.sum(-1).expand_as(scaled))


def test_unknown_scores_of_a_sparse_normaliser_are_refused(monkeypatch):
    evidence = held("sparsemax")
    trace = type(evidence.model).trace
    monkeypatch.setattr(
        type(evidence.model), "trace", lambda self, batch: replace(trace(self, batch), scores=None)
    )
    with refused("renormalise = 'again'", "softmax") as error:
        evidence.table("erasure")
    assert "\n" not in str(error.value)
    scaled = evidence_of(evidence.model, random_texts(LENGTHS), SCALE)
    assert "above_again" not in scaled.table("erasure").column_names
