"""Several heads that learn to copy, small: which heads count, which combinations are made, what is claimed."""

from dataclasses import replace
from pathlib import Path

import pytest
import torch
from conftest import contents, watched
from wording import refused, stopped

from heedmap.data.sequences import Sequences
from heedmap.models.encoder_decoder import EncoderDecoderSettings
from heedmap.papers.kit.registry import figures, paper
from heedmap.papers.snell.copy_task import EVERY, CopyObjective, CopySettings
from heedmap.papers.snell.multihead import POOL, combinations, reproduce
from heedmap.papers.snell.multihead_result import (
    BAD_HEADS,
    MIXED,
    ONE_GOOD,
    SINGLE,
    Multihead,
    result,
)
from heedmap.papers.snell.settings import MultiheadSettings

TINY = {
    "length": 3, "size": 6, "batch_size": 4, "heads": 2, "orders": 1, "wanted": 2, "most": 4, "combinations": 2,
}  # fmt: skip
LEARNS, FAILS, BETWEEN = [0.1] * 4 + [1.0] * 16, [0.1] * 20, [0.1] * 10 + [0.8] * 10


def rows(group, heads, order, accuracies):
    own = {
        "group": group,
        "heads": heads,
        "order": order,
        "attention": 0.5,
        "before": 0.0,
        "after": 0.0,
    }
    return [{**own, "step": EVERY * i, "accuracy": a} for i, a in enumerate(accuracies, 1)]


def made(alone, **settings):
    """Return the trainings of single heads, from the outcomes of each on every draw of sequences."""
    orders = len(alone[0])
    found = [
        row
        for head, some in enumerate(alone)
        for order, one in enumerate(some)
        for row in rows(SINGLE, str(head), order, one)
    ]
    sizes = {"orders": orders, "wanted": 3, "heads": 2, "combinations": 4, **settings}
    return Multihead("", MultiheadSettings.of(**sizes), [], Path(), found)


def model_of(heads, size=5):
    settings = CopySettings(
        sequences=Sequences("permutations", 4, 4),
        model=EncoderDecoderSettings(
            cell="gru", size=size, embedding=size, heads=len(heads), shared=False
        ),
        heads=heads,
        seed=7,
    )
    return CopyObjective(settings).model


def test_models_start_from_the_same_weights_but_for_the_attention():
    one, three = model_of((4,)).state_dict(), model_of((2, 4, 9)).state_dict()
    attention = {"queries.weight", *(name for name in three if name.startswith("contexts."))}
    assert attention < set(three)
    assert all(torch.equal(one[name], three[name]) for name in set(three) - attention)


def test_a_head_starts_from_its_own_weights_wherever_it_stands():
    one, three = model_of((4,)), model_of((2, 4, 9))
    assert torch.equal(three.queries.weight[5:10], one.queries.weight)
    assert torch.equal(three.contexts[1].weight, one.contexts[0].weight)
    assert not torch.equal(three.contexts[0].weight, one.contexts[0].weight)
    assert not torch.equal(model_of((5,)).queries.weight, one.queries.weight)


@torch.no_grad()
def test_equal_heads_together_do_what_one_of_them_does():
    one, three = model_of((4,)).eval(), model_of((4, 4, 4)).eval()
    source, inputs = torch.arange(5)[None], torch.tensor([[5, 0, 1]])
    torch.testing.assert_close(one(source, inputs)[0], three(source, inputs)[0])


def test_a_head_is_good_or_bad_if_every_draw_of_sequences_agrees():
    found = made(
        [[LEARNS, LEARNS], [LEARNS, FAILS], [FAILS, FAILS], [FAILS, BETWEEN], [LEARNS, LEARNS]]
    )
    assert (found.tried, found.good, found.bad) == (5, [0, 4], [2])


def test_only_as_many_heads_count_as_are_wanted():
    found = made([[LEARNS]] * 5 + [[FAILS]] * 4)
    assert (found.good, found.bad) == ([0, 1, 2], [5, 6, 7])
    assert found.has_enough
    assert not made([[LEARNS]] * 5 + [[FAILS]] * 2).has_enough
    assert not made([[LEARNS]] * 5 + [[FAILS]] * 3, heads=4).has_enough


def heads_of(cell):
    """Return the heads of a combination."""
    return [int(head) for head in cell["heads"].split()]


def test_combinations_are_of_their_kind_and_have_their_own_sequences():
    found = made([[LEARNS]] * 3 + [[BETWEEN]] * 2 + [[FAILS]] * 3, combinations=30)
    cells = combinations(found)
    assert len(cells) == 90
    assert len({str(cell) for cell in cells}) == 90
    for cell in cells:
        good = sum(head in found.good for head in heads_of(cell))
        bad = sum(head in found.bad for head in heads_of(cell))
        assert len(set(heads_of(cell))) == 2
        assert cell["order"] >= found.settings.orders
        assert (good, bad) == {BAD_HEADS: (0, 2), ONE_GOOD: (1, 1)}.get(cell["group"], (good, bad))
    of_any = {head for cell in cells if cell["group"] == MIXED for head in heads_of(cell)}
    assert of_any == set(range(8))


def test_any_heads_are_of_the_first_ones():
    found = made([[FAILS]] * (POOL + 10), combinations=100)
    assert {h for c in combinations(found) if c["group"] == MIXED for h in heads_of(c)} == set(
        range(POOL)
    )


def test_without_enough_bad_heads_only_the_other_combinations_are_made():
    few = made([[LEARNS]] * 3 + [[FAILS]])
    assert {cell["group"] for cell in combinations(few)} == {ONE_GOOD, MIXED}
    none = made([[LEARNS]] * 3)
    assert {cell["group"] for cell in combinations(none)} == {MIXED}
    assert (
        "Too few of them for the combinations bad heads and one good head" in result(none).notes[1]
    )


def judged(bad, one_good, mixed, alone):
    """Return the verdicts of counts (learned, failed) of each group."""
    found = []
    for group, (learned, failed) in {BAD_HEADS: bad, ONE_GOOD: one_good, MIXED: mixed}.items():
        for order in range(learned + failed):
            found += rows(group, "0 1", order, LEARNS if order < learned else FAILS)
    learned, failed = alone
    single = made([[LEARNS]] * learned + [[FAILS]] * failed)
    shown = result(replace(single, rows=[*single.rows, *found]))
    return [claim.verdict for claim in shown.claims]


@pytest.mark.parametrize(
    ("bad", "one_good", "mixed", "alone", "verdicts"),
    [
        ((0, 20), (20, 0), (20, 0), (10, 10), ["survives", "survives"]),
        ((20, 0), (0, 20), (0, 20), (10, 10), ["does not", "does not"]),
        ((5, 5), (6, 4), (5, 5), (5, 5), ["undecided", "undecided"]),
        ((0, 0), (6, 4), (10, 0), (0, 10), ["undecided", "survives"]),
    ],
)
def test_claims_follow_the_shares_that_learned(bad, one_good, mixed, alone, verdicts):
    assert judged(bad, one_good, mixed, alone) == verdicts


@pytest.mark.exhaustive
def test_a_reproduction_resumes_to_the_same_bytes_with_any_workers(tmp_path):
    class Stop(Exception):
        pass

    begun = set()

    def stop(done, text):
        name, _, epoch = text.partition(", epoch ")
        begun.update([name] if epoch else [])
        if len(begun) > 2 and epoch.startswith("10 of"):
            raise Stop

    whole = reproduce(out=tmp_path / "whole", workers=1, **TINY)
    with pytest.raises(Stop), watched(stop):
        reproduce(out=tmp_path / "stopped", workers=1, **TINY)
    reproduce(out=tmp_path / "stopped", workers=2, **TINY)
    assert contents(tmp_path / "whole") == contents(tmp_path / "stopped")
    assert paper("snell").read(tmp_path / "whole").rows == whole.rows
    assert {one.key for one in figures(tmp_path / "whole")} == {"multihead-accuracy"}
    assert {row["group"] for row in whole.rows} >= {SINGLE, MIXED}


def test_fewer_heads_than_a_combination_has_are_refused(tmp_path):
    with refused("most", "4 heads"):
        reproduce(out=tmp_path / "out", **{**TINY, "heads": 4, "most": 3})
    assert not (tmp_path / "out").exists()


def test_options_of_another_part_are_refused(heedmap):
    done = heedmap("reproduce", "snell", "multihead", "--steps", "300")
    assert done.code == 2
    stopped(done, "--steps", "multihead")
