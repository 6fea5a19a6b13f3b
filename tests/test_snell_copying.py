"""Learning to copy, small: its looks, its outcomes, its claims, and that it resumes."""

import numpy as np
import pytest
import torch
from conftest import contents, watched
from wording import refused, stopped

from heedmap.data.sequences import Sequences
from heedmap.models.encoder_decoder import EncoderDecoderSettings
from heedmap.papers.kit.registry import figures, paper
from heedmap.papers.snell.copy_task import EVERY, CopyObjective, CopySettings
from heedmap.papers.snell.copying import cells, reproduce
from heedmap.papers.snell.copying_result import Copying, result
from heedmap.papers.snell.settings import KINDS, VARIANTS, CopyingSettings
from heedmap.training.fit import fit

TINY = {
    "length": 3,
    "symbols": 4,
    "size": 6,
    "batch_size": 4,
    "steps": 200,
    "seeds": 2,
    "variant_seeds": 0,
}


def copying(kind="repeats", length=3, symbols=3, **settings):
    sizes = EncoderDecoderSettings(size=16, embedding=16)
    return CopySettings(
        sequences=Sequences(kind, length, symbols),
        model=sizes,
        **{"steps": 60, "batch_size": 8, "learning_rate": 0.01, **settings},
    )


class Told:
    """A model with given predictions and weights."""

    def __init__(self, predicted, weights, symbols):
        self.predicted, self.weights, self.symbols = predicted, weights, symbols
        self.output = torch.nn.Linear(1, 1)

    def __call__(self, source, inputs):
        """Return them as logits and weights."""
        logits = torch.nn.functional.one_hot(self.predicted(source), self.symbols).float()
        return logits, self.weights(source)


def looked_at(length, predicted, weights):
    objective = CopyObjective(copying(length=length, symbols=4))
    objective.model = Told(predicted, weights, 6)
    return objective.scores()


def on(offset):
    """Return weights of two heads: the second is on the symbol `offset` further, the first on none."""

    def weights(source):
        steps = source.shape[1]
        found = torch.zeros(len(source), 2, steps, steps + 9)
        found[:, 0, :, -1] = 1
        for step in range(steps):
            at = step + offset
            found[:, 1, step, at if 0 <= at < steps else -1] = 1
        return found

    return weights


def test_a_look_tells_the_symbols_right_and_where_the_largest_weight_is():
    def wrong_end(source):
        return torch.cat([source[:, :-1], source[:, :1] * 0], 1)

    seen = looked_at(4, wrong_end, on(0))
    assert seen == {"accuracy": pytest.approx(0.8), "attention": 1, "before": 0, "after": 0}
    assert looked_at(4, lambda source: source, on(-1))["before"] == 1
    assert looked_at(4, lambda source: source, on(1)) == {
        "accuracy": 1, "attention": 0, "before": 0, "after": 1,
    }  # fmt: skip


def test_every_step_and_look_has_its_own_sequences():
    objective = CopyObjective(copying(length=30, symbols=30))
    seen = [objective.batch(np.arange(8) + 8 * step).source for step in range(2)]
    objective.epoch = 1
    seen += [objective.batch(np.arange(8)).source, objective._copies(8, 0).source]
    assert all(not torch.equal(a, b) for i, a in enumerate(seen) for b in seen[:i])
    objective.epoch = 0
    assert torch.equal(objective.batch(np.arange(8)).source, seen[0])


def test_the_target_is_the_source_and_its_inputs_are_one_step_later():
    drawn = CopyObjective(copying(length=3, symbols=5)).batch(np.arange(2))
    end, start = 5, 6
    assert (drawn.source[:, -1] == end).all()
    assert (drawn.inputs[:, 0] == start).all()
    assert torch.equal(drawn.source[:, :-1], drawn.inputs[:, 1:])


def test_short_sequences_are_learned():
    trained = fit(CopyObjective(copying(steps=200)))
    assert max(one["accuracy"] for one in trained.scores) > 0.95
    assert trained.scores[0]["accuracy"] < 0.9


def rows_of(accuracies, kind="permutations", variant="as published", seed=0, attention=0.9):
    own = {
        "sequences": kind,
        "model": variant,
        "seed": seed,
        "attention": attention,
        "before": 0.1,
        "after": 0.2,
    }
    return [{**own, "step": EVERY * i, "accuracy": a} for i, a in enumerate(accuracies, 1)]


def made(failures, count=20):
    """Return trainings of which some fail; the others learn at step 50."""
    rows = []
    for kind, failed in zip(KINDS, failures, strict=True):
        for seed in range(count):
            learns = [0.1] * 4 + [1.0] * 16
            rows += rows_of([0.1] * 20 if seed < failed else learns, kind, seed=seed)
    settings = CopyingSettings.of(seeds=count, variant_seeds=0, steps=200)
    return Copying("", settings, [], None, rows)


@pytest.mark.parametrize(
    ("accuracies", "outcome", "step"),
    [
        ([0.1] * 20, "failed", np.inf),
        ([0.1] * 18 + [0.6, 0.1], "between", np.inf),
        ([0.1] * 18 + [0.59, 1.0], "failed", 200),  # after the released code's last look
        ([0.1] * 18 + [0.96, 0.1], "learned", 190),
        ([0.1, 0.96] + [0.1] * 18, "learned", 20),  # and lost it again
        ([0.95] * 20, "between", np.inf),
    ],
)
def test_outcomes_follow_the_released_codes_rule(accuracies, outcome, step):
    (training,) = Copying("", CopyingSettings(), [], None, rows_of(accuracies)).trainings(
        "permutations"
    )
    assert (training.outcome, training.learned_at) == (outcome, step)


@pytest.mark.parametrize(
    ("failures", "verdicts"),
    [
        ((10, 0, 0), ["survives", "survives"]),
        ((2, 0, 0), ["does not", "undecided"]),
        ((20, 0, 0), ["does not", "survives"]),
        ((10, 0, 10), ["survives", "undecided"]),
        ((0, 0, 10), ["does not", "does not"]),
        ((0, 0, 0), ["does not", "undecided"]),
    ],
)
def test_claims_follow_the_failures(failures, verdicts):
    claims = result(made(failures)).claims
    assert [claim.verdict for claim in claims[::2]] == verdicts
    assert [claim.verdict for claim in claims[1::2]] == [
        "does not",
        "undecided",
    ]  # the attention finds it


def test_a_training_that_copies_from_memory_has_not_found_the_symbol():
    rows = []
    for seed in range(20):
        rows += rows_of([1.0] * 20, seed=seed, attention=0.1 if seed < 10 else 0.9)
        rows += rows_of([1.0] * 20, "subsets", seed=seed) + rows_of(
            [1.0] * 20, "repeats", seed=seed
        )
    shown = result(Copying("", CopyingSettings(variant_seeds=0), [], None, rows))
    assert [claim.verdict for claim in shown.claims] == [
        "does not",
        "survives",
        "undecided",
        "survives",
    ]
    assert [line[8] for line in shown.summary.lines] == ["10", "0", "0"]


def test_two_trainings_decide_nothing():
    shown = result(made((1, 0, 0), count=2))
    assert {claim.verdict for claim in shown.claims} == {"undecided"}


def test_tables_show_counts_intervals_and_published_words():
    shown = result(made((10, 0, 0)))
    assert shown.summary.lines[0][2:8] == [
        "20", "10", "0", "10", "0.50 [0.27, 0.73]", "about half (Snell et al.'s slides)",
    ]  # fmt: skip
    when = shown.sections[1].lines
    assert when[0][2:] == ["10", "> 200", "50 to > 200"]
    assert when[1][2:] == ["20", "50", "50 to 50"]


@pytest.mark.exhaustive
def test_a_reproduction_resumes_to_the_same_bytes_with_any_workers(tmp_path):
    class Stop(Exception):
        pass

    begun = set()

    def stop(done, text):
        name, _, epoch = text.partition(", epoch ")
        begun.update([name] if epoch else [])
        if len(begun) > 3 and epoch.startswith("10 of"):
            raise Stop

    whole = reproduce(out=tmp_path / "whole", workers=1, **TINY)
    with pytest.raises(Stop), watched(stop):
        reproduce(out=tmp_path / "stopped", workers=1, **TINY)
    assert "Not finished: 3 models" in (tmp_path / "stopped" / "result.md").read_text()
    reproduce(out=tmp_path / "stopped", workers=2, **TINY)
    assert contents(tmp_path / "whole") == contents(tmp_path / "stopped")
    assert len(whole.rows) == 6 * 20
    assert {one.key for one in figures(tmp_path / "whole")} == {
        "copying-accuracy",
        "copying-attention",
    }
    assert paper("snell").read(tmp_path / "whole").rows == whole.rows


def test_a_training_that_learned_ends_with_the_released_code_and_others_go_on():
    settings = copying(steps=400)
    assert len(fit(CopyObjective(settings)).scores) == 20
    slow = copying(steps=300, learning_rate=1e-6)
    assert len(fit(CopyObjective(slow)).scores) == 30


def test_variants_are_trained_as_long_as_the_released_code():
    settings = CopyingSettings(seeds=2, variant_seeds=1)
    every = cells(settings)
    assert len(every) == 3 * 2 + 3 * (len(VARIANTS) - 1)
    assert len({str(cell) for cell in every}) == len(every)
    assert [cell["sequences"] for cell in every[:3]] == list(KINDS)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"symbols": 3}, ["symbols", "more than the 3"]),
        ({"seeds": 1}, ["seeds = 1", "2"]),
        ({"steps": 205}, ["steps = 205", "10"]),
        ({"steps": 100}, ["steps = 100", "200"]),
        ({"learning_rate": 0.0}, ["learning_rate = 0.0", "0"]),
        ({"nothing": 1}, ["nothing = 1"]),
    ],
)
def test_what_cannot_be_is_refused_before_anything_is_written(options, named, tmp_path):
    with refused(*named):
        reproduce(out=tmp_path / "out", workers=1, **{**TINY, **options})
    assert not (tmp_path / "out").exists()


@pytest.mark.exhaustive
def test_another_reproduction_is_not_overwritten(tmp_path):
    small = {**TINY, "seeds": 2, "batch_size": 1}
    reproduce(out=tmp_path / "out", workers=1, **small)
    before = contents(tmp_path / "out")
    with refused("seeds: 2 -> 3", "--overwrite"):
        reproduce(out=tmp_path / "out", workers=1, **{**small, "seeds": 3})
    assert contents(tmp_path / "out") == before


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["nonsense"], ["nonsense", "classification, copying, multihead, translation"]),
        (["copying", "--budget", "huge"], ["--budget", "quick or paper", "huge"]),
        (["copying", "--seeds", "1"], ["seeds = 1", "2"]),
    ],
)
def test_the_command_refuses_in_one_line(heedmap, arguments, named):
    done = heedmap("reproduce", "snell", *arguments)
    stopped(done, *named)
    assert done.err.count("\n") == 1


def test_the_command_without_a_part_says_which_there_are(heedmap):
    assert "heedmap reproduce snell copying" in heedmap("reproduce", "snell").out
