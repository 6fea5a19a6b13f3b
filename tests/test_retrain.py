"""Further trainings: what is trained, that it is kept and never twice, and what the tables say of it."""

import shutil
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest
import torch
from conftest import WORDS, contents, small_corpus, small_pairs, watched
from making import left_over
from tiny_audits import check_numbers
from wording import refused, stopped, warned

import heedmap.retraining.trainer as trainer
from heedmap.data.load import load
from heedmap.data.marks import marks_of
from heedmap.experiments.questions.trained_adversary import adversaries
from heedmap.experiments.registry import registered
from heedmap.experiments.results import Results
from heedmap.experiments.seeds import Seeds, matrix, over_seeds, seed_mean
from heedmap.experiments.variants import Adversary, Penalty, Variant
from heedmap.retraining.base import base_of
from heedmap.retraining.trainer import Trainer, rounds
from heedmap.runs.audit import audit, open_audit
from heedmap.runs.retrain import questions, retrain
from heedmap.runs.train import train
from heedmap.settings.audit import AuditSettings
from heedmap.settings.retraining import RetrainSettings
from heedmap.training.evaluation import predict_logits

SIZES = {"embedding_size": 8, "hidden_size": 8, "epochs": 2, "min_df": 1}
BRIEF = {
    "seeds": 2, "lambdas": (0.5,), "adversary_epochs": 3, "forbidden": "mark0,mark1", "penalties": (1.0,),
    "workers": 1,
}  # fmt: skip
AUDIT = {"permutations": 5}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run in a folder, and all questions asked of it."""
    run = train(small_corpus(), out=tmp_path_factory.mktemp("runs") / "run", **SIZES)
    audit(run, **AUDIT)
    return run, retrain(run, **BRIEF)


@pytest.fixture(scope="module")
def learned():
    """A run that has learned its texts, in memory."""
    return train(small_corpus(), **SIZES | {"epochs": 10, "learning_rate": 0.05})


def trainer_of(run, folder, **options):
    base = base_of(run.model, run.corpus, run.settings, run.corpus.splits["test"], folder)
    return Trainer(base, RetrainSettings.of(**options), workers=1)


def test_every_question_that_applies_has_a_table_and_a_finding(made):
    _, found = made
    assert set(questions()) <= set(found.tables)
    keys = {finding.key for finding in found.findings}
    check_numbers(found)
    assert set(questions()) <= keys
    assert all(f.level == "for comparison" for f in found.findings if f.key in questions())
    assert not left_over({name: found.tables[name].column_names for name in questions()})


def test_a_variant_is_what_train_makes_of_its_seed(made, tmp_path):
    run, _ = made
    other = train(small_corpus(), seed=1, **SIZES)
    (outcome,) = trainer_of(run, tmp_path).outcomes([Variant(1)])
    split = run.corpus.splits["test"]
    expected = predict_logits(other.model, other.model.encoded(split.texts, split.labels))
    assert outcome.logits == pytest.approx(expected.double().numpy(), abs=0)
    assert outcome.epoch == other.training.best_epoch + 1
    trace = other.model.trace(other.model.batch(split.texts, range(len(split))))
    for row, text in enumerate(split.tokens):
        assert outcome.attention[row] == pytest.approx(
            trace.heatmap[row, : len(text)].numpy(), abs=1e-6
        )


def test_a_model_under_uniform_weights_is_the_one_with_the_score_uniform(made, tmp_path):
    run, _ = made
    other = train(small_corpus(), seed=2, score="uniform", **SIZES)
    (outcome,) = trainer_of(run, tmp_path).outcomes([Variant(2, score="uniform")])
    split = run.corpus.splits["test"]
    expected = predict_logits(other.model, other.model.encoded(split.texts, split.labels))
    assert outcome.logits == pytest.approx(expected.double().numpy(), abs=0)
    for row, text in enumerate(split.tokens):
        assert outcome.attention[row] == pytest.approx(np.full(len(text), 1 / len(text)))


def test_a_guided_model_reads_every_text_with_its_guides_weights(made, tmp_path):
    run, _ = made
    them = trainer_of(run, tmp_path)
    donor = Variant(1, encoder="cnn")
    base, foreign, own = them.outcomes(
        [Variant(3, encoder="average", guide="base"), Variant(3, guide=donor), donor]
    )
    split = run.corpus.splits["test"]
    heat = run.model.trace(run.model.batch(split.texts, range(len(split)))).heatmap
    for row, text in enumerate(split.tokens):
        assert base.attention[row] == pytest.approx(heat[row, : len(text)].numpy(), abs=1e-6)
        assert foreign.attention[row].tolist() == own.attention[row].tolist()


@pytest.mark.parametrize("guide", ["uniform", "gradient", "leave_one_out", "read_out"])
def test_guides_are_weights_even_where_the_importance_is_undefined(made, tmp_path, guide):
    run, _ = made
    (outcome,) = trainer_of(run, tmp_path).outcomes([Variant(1, encoder="average", guide=guide)])
    for row, text in enumerate(run.corpus.splits["test"].tokens):
        weights = outcome.attention[row]
        assert len(weights) == len(text)
        assert weights.min() >= 0
        assert weights.sum() == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("direction", ["adversary", "base"])
def test_an_adversary_attends_elsewhere_than_its_control(learned, tmp_path, direction):
    far, control = trainer_of(learned, tmp_path).outcomes(
        [Variant(1, adversary=Adversary(s, direction, epochs=15)) for s in (1.0, 0.0)]
    )
    assert far.dev["jsd"] > control.dev["jsd"] + 0.05
    assert control.dev["tvd"] < 0.1


def test_a_penalty_takes_attention_off_the_words_and_removal_takes_the_words(learned, tmp_path):
    run = learned
    words = ("mark0", "mark1")
    plain, hidden, gone = trainer_of(run, tmp_path).outcomes(
        [
            Variant(1, penalty=Penalty(0.0, words)),
            Variant(1, penalty=Penalty(5.0, words)),
            Variant(1, penalty=Penalty(0.0, words, removed=True)),
        ]
    )
    marks = marks_of(run.corpus.splits["test"], words)
    mass = [[o.attention[row] @ marks[row] for row in range(2, 20)] for o in (plain, hidden)]
    assert np.mean(mass[1]) < 0.6 * np.mean(mass[0])
    for row, text in enumerate(run.corpus.splits["test"].tokens):
        left = [token for token in text if token not in words]
        assert len(gone.attention[row]) == max(1, len(left))


def test_without_penalty_it_is_the_runs_own_training(made, tmp_path):
    run, _ = made
    own, control = trainer_of(run, tmp_path).outcomes(
        [Variant(1), Variant(1, penalty=Penalty(0.0, ("mark0",)))]
    )
    assert own.logits.tolist() == control.logits.tolist()


def test_what_is_needed_comes_first_and_everything_once():
    donor = Variant(1, encoder="cnn")
    hidden = Variant(2, penalty=Penalty(1.0, ("he",)))
    found = rounds([Variant(3, guide=donor), hidden, donor, Variant(3, guide=donor)])
    assert found == [[donor, hidden.control()], [Variant(3, guide=donor), hidden]]
    assert rounds([]) == []


def test_what_the_run_has_anyway_makes_no_other_training(made, tmp_path):
    run, _ = made
    base = base_of(run.model, run.corpus, run.settings, run.corpus.splits["test"], tmp_path)
    named = Variant(1, encoder="lstm", score="additive", normaliser="softmax")
    assert base.plain(named) == Variant(1)
    assert base.plain(Variant(2, guide=named)) == Variant(2, guide=Variant(1))
    assert base.plain(Variant(1, encoder="cnn")) == Variant(1, encoder="cnn")


def test_nothing_is_trained_twice_and_other_settings_train_what_is_missing(made, monkeypatch):
    run, first = made
    trained = []
    real = trainer.fit
    monkeypatch.setattr(trainer, "fit", lambda *a, **k: trained.append(a) or real(*a, **k))
    before = contents(run.folder / "retrained")
    again = retrain(run, **BRIEF)
    assert not trained
    assert contents(run.folder / "retrained") == before
    for name in questions():
        assert again.tables[name].equals(first.tables[name])
    retrain(run, ("stability",), **{**BRIEF, "seeds": 3})
    assert len(trained) == 1, "one seed more"
    retrain(run, **BRIEF)


def test_a_later_audit_keeps_what_was_found(made):
    run, found = made
    later = audit(run, **AUDIT)
    assert set(questions()) <= set(later.tables)
    opened = open_audit(run.folder)
    assert {f.key for f in opened.findings} == {f.key for f in found.findings}
    assert "Is the attention needed" in (run.folder / "report.html").read_text()


def test_a_run_without_a_folder_is_asked_too():
    run = train(small_corpus(), **SIZES)
    found = retrain(run, ("necessity",), seeds=2, workers=1)
    assert set(found.tables) & set(questions()) == {"necessity"}


def test_necessity_counts_what_its_models_predict(made):
    run, found = made
    table = found.tables["necessity"]
    label = table["label"].to_numpy()
    split = run.corpus.splits["test"]
    trace = run.model.trace(run.model.batch(split.texts, range(len(split))))
    even = trace.mask / trace.mask.sum(-1, keepdim=True)
    flat = run.model.predict(trace, even[None, :, None].float())[0].argmax(-1)
    assert table["uniform_at_test"].to_pylist() == flat.tolist()
    one = [row for row, text in enumerate(split.tokens) if len(text) == 1]
    own = (table["predicted"].to_numpy() == label)[one]
    assert table["shuffled_right"].to_numpy()[one].tolist() == own.tolist()
    base = trace.logits.double().softmax(-1).numpy()
    (outcome,) = trainer_of(run, run.folder / "retrained").outcomes([Variant(1, score="uniform")])
    other = np.exp(outcome.logits) / np.exp(outcome.logits).sum(1, keepdims=True)
    apart = [one[0] for one in table["uniform_tvd"].to_pylist()]
    assert apart == pytest.approx(np.abs(base - other).sum(1) / 2, abs=1e-6)
    accuracy = Seeds(table["learned"], label, found.classes).accuracy
    assert accuracy == [float(x) for x in (matrix(table["learned"]) == label[:, None]).mean(0)]


def test_stability_is_undefined_for_one_token_and_0_for_the_same_model(made, tmp_path):
    run, found = made
    jsd = found.tables["stability"]["jsd"].to_pylist()
    tokens = run.corpus.splits["test"].tokens
    assert all((one is None) == (len(text) < 2) for one, text in zip(jsd, tokens, strict=True))
    same = trainer_of(run, tmp_path)
    same.seed = -1  # so that the "other" seeds begin with the run's own
    from heedmap.experiments.context import AuditContext

    evidence = AuditContext(
        run.model, run.corpus.splits["test"], AuditSettings(), registered(), retraining=same
    )
    table = registered()["stability"].run(evidence)
    first = np.array(table["each_jsd"].to_pylist())[:, 0]
    assert first == pytest.approx(np.zeros(len(first)), abs=1e-6)


def test_adversaries_are_compared_text_by_text(made):
    run, found = made
    table = found.tables["trained_adversary"]
    every = adversaries(table)
    assert [(one.direction, one.strength) for one in every] == [
        ("adversary", 0.0), ("adversary", 0.5), ("base", 0.5),
    ]  # fmt: skip
    assert all(len(one.tvd) == len(run.corpus.splits["test"]) for one in every)
    short = found.tables["instances"]["n_tokens"].to_numpy() < 2
    assert every[1].jsd[short] == pytest.approx(np.zeros(short.sum()), abs=1e-9)
    kl = table["kl_adversary"].to_numpy()
    jsd = table["jsd"].to_numpy()
    assert (jsd <= kl / 2 + 1e-6).all(), "JSD ≤ ½ KL(p‖m) + … ≤ ½ KL"


BOUND = 0.01  # the tolerance, for there is no table of other seeds
SEED = "this run's seed + 1"


@pytest.mark.parametrize(
    ("dev_tvd", "value", "who", "why"),
    [
        (
            BOUND,
            0.3,
            f"a trained adversary (λ 0.5, KL(base ‖ adversary), {SEED})",
            "of those that answer on dev within 0.010 (TVD, the tolerance) the one that attends",
        ),
        (
            2 * BOUND,
            0.2,
            f"the control (λ = 0, {SEED}), a model never asked to attend elsewhere",
            "no adversary was found, which is no evidence of one: of those trained none answers on dev",
        ),
    ],
    ids=["one stays close", "none stays close"],
)
def test_the_finding_says_which_model_it_is_about(dev_tvd, value, who, why):
    tables = {
        "instances": pa.table(
            {"tokens": [["a", "b"], ["b", "a"]], "n_tokens": [2, 2], "predicted": [0, 1]}
        ),
        "trained_adversary": pa.table(
            {
                "row": [0, 1] * 2,
                "direction": ["adversary"] * 2 + ["base"] * 2,
                "strength": [0.0] * 2 + [0.5] * 2,
                "dev_tvd": [0.0] * 2 + [dev_tvd] * 2,
                "dev_jsd": [0.2] * 2 + [0.3] * 2,
                "tvd": [0.0] * 2 + [dev_tvd] * 2,
                "jsd": [0.2] * 2 + [0.3] * 2,
            }
        ),
    }
    results = Results(tables, AuditSettings(epsilon=BOUND), ["no", "yes"])
    (finding,) = registered()["trained_adversary"].findings(results)
    assert finding.value == pytest.approx(value)
    assert finding.measure == f"mean JSD between this map and that of {who}"
    assert finding.meaning.startswith(why)
    assert ("the control (λ = 0) 0.20 at TVD 0.000" in finding.meaning) == who.startswith(
        "a trained"
    )
    answers = (
        "the adversary's answers are 0.010" if value == 0.3 else "the control's answers are 0.000"
    )
    assert finding.meaning.endswith(
        f"{answers} from this model's (TVD); others stand in the figure"
    )


def test_the_guide_is_the_adversary_of_the_largest_strength_close_or_not(made):
    _, found = made
    (guided,) = (finding for finding in found.findings if finding.key == "guidance")
    said = f"the largest λ, KL(adversary ‖ base), {SEED}, whether its answers stay close or not"
    assert guided.meaning.endswith(said)


def test_deception_knows_uniform_weights_and_the_least_mass(made):
    _, found = made
    frame = found.tables["deception"].to_pandas()
    marked = frame[~frame["removed"] & frame["uniform"].notna()]
    assert set(frame["strength"]) == {0.0, 1.0}
    control = marked[marked["strength"] == 0]
    assert (control["least"] <= control["mass"] + 1e-6).all()
    assert marked[marked["strength"] > 0]["least"].isna().all()
    assert frame[frame["removed"]]["mass"].isna().all()
    n = found.tables["instances"]["n_tokens"].to_numpy()
    assert control[control["seed"] == 1]["uniform"].to_numpy() == pytest.approx(1 / n)


def test_pairs_are_asked_what_applies_to_them():
    run = train(small_pairs(), **SIZES)
    found = retrain(run, seeds=2, lambdas=(0.5,), adversary_epochs=2, workers=1)
    asked = set(found.tables) & set(questions())
    asked_of_pairs = ("necessity", "stability", "trained_adversary", "adversary_agreement")
    assert asked == {*asked_of_pairs}
    with refused("guidance", "deception", ", ".join(asked_of_pairs)):
        retrain(run, ("guidance",), workers=1)


def test_models_of_sentences_are_asked_what_applies_to_them():
    corpus = load("reviews", tokenizer="sentences", train_texts=60, test_texts=20)
    run = train(corpus, **SIZES | {"encoder": "none", "epochs": 1})
    found = retrain(run, seeds=2, lambdas=(0.5,), adversary_epochs=1, workers=1)
    assert set(found.tables) & set(questions()) == {
        "necessity", "stability", "trained_adversary", "adversary_agreement",
    }  # fmt: skip


@pytest.mark.parametrize(
    ("names", "options", "named"),
    [
        (("adversary",), {}, ["adversary", "necessity, stability"]),
        (("deception",), {}, ["deception", "--forbidden"]),
        (("necessity",), {"seeds": 1}, ["seeds = 1", "2"]),
        (("necessity",), {"lambdas": (-1.0,)}, ["lambdas = (-1.0,)", "0,0.1,1"]),
        (("necessity",), {"penalties": "a"}, ["penalties = 'a'", "0,0.1,1"]),
        (("deception",), {"forbidden": "nowhere"}, ["--forbidden", "nowhere"]),
    ],
)
def test_bad_input_is_refused_before_anything_is_trained(made, names, options, named, monkeypatch):
    run, _ = made
    monkeypatch.setattr(trainer, "fit", pytest.fail)
    before = contents(run.folder)
    with refused(*named):
        retrain(run, names, **options)
    assert contents(run.folder) == before


def test_a_damaged_outcome_is_named(made, tmp_path):
    run, _ = made
    them = trainer_of(run, tmp_path)
    them.outcomes([Variant(1)])
    path = them.base.path(Variant(1))
    path.write_bytes(b"no table")
    with refused(path):
        them.outcomes([Variant(1)])


def test_a_damaged_table_says_which_command_trains_for_it_again(made, tmp_path):
    run, _ = made
    copy = replace(run, folder=shutil.copytree(run.folder, tmp_path / "run"))
    path = copy.folder / "tables" / "stability.parquet"
    path.write_bytes(path.read_bytes()[:-1] + b"?")
    with refused("stability", "heedmap retrain stability --run"):
        audit(copy, **AUDIT)
    assert path.read_bytes().endswith(b"?")
    with warned("stability.parquet.changed"):
        assert "stability" in retrain(copy, ("stability",), **BRIEF).tables


def test_a_stopped_training_goes_on_to_the_same_bytes(made, tmp_path):
    run, _ = made
    whole, parts = trainer_of(run, tmp_path / "whole"), trainer_of(run, tmp_path / "parts")
    variant = Variant(1, adversary=Adversary(0.5, epochs=4))
    whole.outcomes([variant])

    def stop(done, text):
        if done > 0.5:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), watched(stop):
        parts.outcomes([variant])
    assert not parts.base.is_finished(variant)
    parts.outcomes([variant])
    assert contents(tmp_path / "parts") == contents(tmp_path / "whole")


def test_over_seeds_is_students_interval():
    assert over_seeds([0.5]) == "0.500"
    assert over_seeds([0.4, 0.6], 2) == "0.50 [0.00, 1.00]"
    assert over_seeds([0.5, 0.5, 0.5]) == "0.500 [0.500, 0.500]"
    # A score of up to 100 (BLEU) is no share: its interval is not cut.
    assert seed_mean([20.0, 22.0, 24.0], 1) == "22.0 [17.0, 27.0]"
    assert seed_mean([0.5, float("nan")], 1) == "0.5, 1 of 2"


@pytest.mark.exhaustive
def test_workers_do_not_change_a_byte(made, tmp_path):
    run, _ = made
    one, two = (trainer_of(run, tmp_path / name) for name in ("one", "two"))
    two._workers = 2
    variants = [Variant(1), Variant(2), Variant(1, guide=Variant(1, encoder="cnn"))]
    one.outcomes(variants)
    two.outcomes(variants)
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert torch.get_num_threads() == 1


@pytest.fixture
def reviews_csv(tmp_path, monkeypatch):
    """A folder with a file of reviews, as the place to be."""
    rng = np.random.default_rng(0)
    lines = [
        f"{'lovely' if i % 2 else 'dreadful'} {' '.join(WORDS[j] for j in rng.integers(0, 40, 5))},{i % 2}"
        for i in range(80)
    ]
    (tmp_path / "reviews.csv").write_text("text,label\n" + "\n".join(lines) + "\n")
    monkeypatch.chdir(tmp_path)
    return tmp_path


TINY = ("--epochs", "1", "--embedding-size", "8", "--hidden-size", "8")


def test_the_command_says_what_it_will_take_and_shows_the_answers_on_card_and_page(
    heedmap, reviews_csv
):
    assert heedmap("train", "--data", "reviews.csv", *TINY, "--out", "run").code == 0
    asked = ("retrain", "necessity", "stability", "--run", "run", "--seeds", "2", "--workers", "1")
    done = heedmap(*asked)
    assert done.code == 0, done.err
    assert "4 trainings, about" in done.err
    assert "Is the attention needed" in done.out
    page = (reviews_csv / "run" / "report.html").read_text()
    assert "How different are the maps of other seeds?" in page
    again = heedmap(*asked)
    assert again.code == 0
    assert "trainings" not in again.err, "all are there"
    assert again.out == done.out


@pytest.mark.exhaustive
def test_an_audit_with_retraining_takes_its_own_options(heedmap, reviews_csv):
    model = ("--encoder", "average", *TINY)
    done = heedmap(
        "audit", "--data", "reviews.csv", *model, "--instances", "9", "--retrain", "--out", "run"
    )
    assert done.code == 0, done.err
    found = open_audit("run")
    assert found.settings.audit.instances == 9
    assert set(questions()) - set(found.tables) == {"deception"}


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (("retrain",), ["--run"]),
        (("retrain", "--run", "nowhere"), ["nowhere", "settings.toml"]),
        (("retrain", "--run", "run", "--lambdas=-1"), ["lambdas = '-1'", "0,0.1,1"]),
        (("retrain", "--run", "run", "--seeds", "1"), ["seeds = 1", "2"]),
        (("retrain", "necesity", "--run", "run"), ["necesity", "necessity"]),
        (("retrain", "--run", "run", "--forbidden", "lovly"), ["--forbidden", "lovly", "lovely"]),
    ],
)
def test_bad_options_are_one_line_and_nothing_is_written(heedmap, reviews_csv, arguments, named):
    assert heedmap("train", "--data", "reviews.csv", *TINY, "--out", "run").code == 0
    before = contents("run")
    done = heedmap(*arguments)
    assert done.err.count("\n") == 1, done.err
    stopped(done, *named)
    assert contents("run") == before


def test_a_transformer_is_refused(heedmap, reviews_csv):
    done = heedmap("audit", "--model", "m", "--data", "reviews.csv", "--retrain")
    stopped(done, "--retrain", "--model")


def test_the_run_may_stand_before_the_questions(heedmap, tmp_path):
    (tmp_path / "empty").mkdir()
    by_place = heedmap("retrain", tmp_path / "empty", "necessity")
    by_name = heedmap("retrain", "--run", tmp_path / "empty", "necessity")
    assert (by_place.code, by_place.err) == (2, by_name.err)
    assert "expected --run" not in by_place.err


def test_a_question_is_one_though_a_folder_has_its_name(heedmap, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "necessity").mkdir()
    found = heedmap("retrain", "necessity")
    assert found.code == 2
    assert "expected --run" in found.err
