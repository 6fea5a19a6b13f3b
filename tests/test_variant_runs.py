"""What `heedmap retrain` trained, opened as runs: the same answers and maps, kept, audited and explained."""

import json
import shutil
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
from wording import refused

import heedmap as hm
from heedmap.data.batches import Ragged
from heedmap.data.load import load
from heedmap.experiments.variants import Adversary, Penalty, Variant
from heedmap.files.identity import identity, settings_hash
from heedmap.files.tables import write_table
from heedmap.importance.deletions import reread_without_each
from heedmap.importance.leave_one_out import logits_without_each
from heedmap.report.card import facts
from heedmap.retraining.base import base_of
from heedmap.retraining.trainer import Trainer
from heedmap.runs.comparison import differences
from heedmap.runs.folder import RunFolder
from heedmap.runs.listing import describe
from heedmap.runs.retrain import retrain
from heedmap.runs.train import train
from heedmap.runs.variant_folder import keep_variant
from heedmap.settings.retraining import RetrainSettings

SIZES = {"embedding_size": 8, "hidden_size": 8, "epochs": 2, "min_df": 1}
OPENED = {
    "adversary": Variant(1, adversary=Adversary(0.5, epochs=2)),
    "twin": Variant(1, score="uniform"),
    "seed": Variant(2, encoder="cnn"),
    "guided by uniform weights": Variant(1, encoder="average", guide="uniform"),
    "guided by the run's map": Variant(1, encoder="average", guide="base"),
    "guided by its gradient": Variant(1, encoder="cnn", guide="gradient"),
    "guided by its leave-one-out": Variant(1, encoder="average", guide="leave_one_out"),
    "guided by its read-out": Variant(1, guide="read_out"),
    "guided by an adversary": Variant(
        2, encoder="average", guide=Variant(1, adversary=Adversary(0.5, epochs=2))
    ),
    "deceptive": Variant(1, penalty=Penalty(1.0, ("good",))),
}
REFUSED = {
    "removed": Variant(1, penalty=Penalty(0.0, ("good",), removed=True)),
}


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A run, and the names and outcomes of its variants."""
    run = train(
        load("reviews", train_texts=60, test_texts=20),
        out=tmp_path_factory.mktemp("runs") / "run",
        **SIZES,
    )
    folder = RunFolder(run.folder)
    base = base_of(run.model, run.corpus, run.settings, run.corpus.splits["test"], folder.retrained)
    trainer = Trainer(base, RetrainSettings.of(), workers=1)
    variants = OPENED | REFUSED
    outcomes = trainer.outcomes(list(variants.values()))
    names = {key: base.path(trainer.base.plain(v)).stem for key, v in variants.items()}
    return run, names, dict(zip(variants, outcomes, strict=True))


@pytest.mark.parametrize("kind", OPENED)
def test_a_variant_answers_and_attends_as_it_did_when_it_was_trained(made, kind, tmp_path):
    run, names, outcomes = made
    opened = hm.open_run(run.folder, variant=names[kind])
    assert opened.folder is None
    kept = keep_variant(opened, tmp_path / "variant", overwrite=False)
    again = hm.open_run(tmp_path / "variant")
    split = run.corpus.splits["test"]
    for variant in (opened, kept, again):
        batch = variant.model.batch(split.texts, range(len(split)))
        trace = variant.model.trace(batch)
        assert trace.logits.numpy() == pytest.approx(outcomes[kind].logits, abs=1e-5)
        maps = Ragged([h[m].numpy() for h, m in zip(trace.heatmap, trace.mask, strict=True)])
        for row in range(len(split)):
            assert maps[row] == pytest.approx(outcomes[kind].attention[row], abs=1e-6)
        assert variant.training == opened.training


def test_a_folder_of_a_variant_is_kept_again_as_it_is_and_is_no_other(made, tmp_path):
    run, names, _ = made
    adversary = hm.open_run(run.folder, variant=names["adversary"])
    place = tmp_path / "variant"
    keep_variant(adversary, place, overwrite=False)
    before = {path: path.read_bytes() for path in place.rglob("*") if path.is_file()}
    keep_variant(adversary, place, overwrite=False)
    assert {path: path.read_bytes() for path in place.rglob("*") if path.is_file()} == before
    with refused(place, "other settings", "variant", "--overwrite"):
        keep_variant(hm.open_run(run.folder, variant=names["twin"]), place, overwrite=False)
    keep_variant(hm.open_run(run.folder, variant=names["twin"]), place, overwrite=True)
    assert hm.open_run(place).settings.model.score == "uniform"


def test_a_plain_variant_is_the_run_that_its_settings_make(made, tmp_path):
    run, names, _ = made
    opened = hm.open_run(run.folder, variant=names["twin"])
    assert opened.settings.variant is None
    trained = train(
        load("reviews", train_texts=60, test_texts=20),
        seed=1,
        score="uniform",
        out=tmp_path / "twin",
        **SIZES,
    )
    kept = keep_variant(opened, tmp_path / "twin", overwrite=False)  # the same run is there
    assert kept.training.scores == trained.training.scores


def test_an_adversary_is_audited_and_explained_and_not_retrained(made, tmp_path):
    run, names, _ = made
    opened = hm.open_run(run.folder, variant=names["adversary"])
    assert opened.settings.variant == names["adversary"]
    kept = keep_variant(opened, tmp_path / "variant", overwrite=False)
    audit = hm.audit(kept, permutations=5, progress=False)
    assert audit.bottom_line.answer
    tokens = run.corpus.splits["test"].tokens[0]
    explanation = hm.explain(tmp_path / "variant", " ".join(tokens))
    assert len(explanation.tokens) == len(tokens)
    with refused(names["adversary"], "retrain the run itself"):
        retrain(kept, workers=1)


def test_what_is_no_run_by_itself_is_refused_with_its_cause(made):
    run, names, _ = made
    with refused(names["removed"], "without"):
        hm.open_run(run.folder, variant=names["removed"])


def test_a_guided_model_reads_a_new_text_with_its_guides_weights(made):
    run, names, _ = made
    texts = [["the", "plot", "is", "unheard", "of"], ["good"], ["bad", "bad"]]
    adversary = hm.open_run(run.folder, variant=names["adversary"])
    for kind, guide in (("the run's map", run), ("an adversary", adversary)):
        guided = hm.open_run(run.folder, variant=names[f"guided by {kind}"])
        heat, expected = (
            model.trace(model.batch(texts, range(3))).heatmap
            for model in (guided.model, guide.model)
        )
        assert heat.numpy() == pytest.approx(expected.numpy(), abs=1e-6)


def test_weights_of_an_importance_are_that_importance_scaled(made):
    run, names, _ = made
    guided = hm.open_run(run.folder, variant=names["guided by its leave-one-out"])
    texts = [["a", "good", "plot"], ["good"]]  # of one word it is undefined
    heat = guided.model.trace(guided.model.batch(texts, range(2))).heatmap
    change = reread_without_each(run.model, texts[:1], "remove")[0].double().softmax(-1)
    whole = run.model.trace(run.model.batch(texts[:1], [0])).logits.double().softmax(-1)
    distance = 0.5 * (change - whole).abs().sum(-1)
    assert heat[0].numpy() == pytest.approx((distance / distance.sum()).numpy(), abs=1e-4)
    assert heat[1].tolist() == [1, 0, 0]


@pytest.mark.parametrize("kind", ["the run's map", "its gradient"])
def test_leave_one_out_of_a_guided_model_asks_its_guide_again(made, kind):
    run, names, _ = made
    model = hm.open_run(run.folder, variant=names[f"guided by {kind}"]).model
    texts = run.corpus.splits["test"].tokens[:3]
    batch = model.batch(texts, range(3))
    without = logits_without_each(model, batch, texts)
    for row, text in enumerate(texts):
        for place in range(len(text)):
            shorter = [[*text[:place], *text[place + 1 :]]]
            expected = model.logits(model.batch(shorter, [0]))[0]
            assert without[row, place].numpy() == pytest.approx(expected.numpy(), abs=1e-5)


def test_a_guided_model_is_kept_audited_and_explained(made, tmp_path, heedmap):
    run, names, outcomes = made
    name = names["guided by the run's map"]
    explained = heedmap("explain", run.folder, "A dull plot.", "--variant", name, "--json")
    assert explained.code == 0, explained.err
    done = heedmap("audit", "--run", run.folder, "--variant", name, "--permutations", 5)
    assert done.code == 0, done.err
    place = run.folder.with_name(f"{run.folder.name}-{name}")
    audit = hm.open_audit(place)
    predicted = audit["instances"]["predicted"].to_numpy()
    assert (predicted == outcomes["guided by the run's map"].predicted).all()
    shown = heedmap("report", place)
    card = " ".join(shown.out.replace("│", " ").split())  # whatever its lines
    assert "average encoder, guided by the map of another model (lstm, additive)" in card
    again = heedmap("explain", place, "A dull plot.", "--json")
    assert json.loads(again.out)["answer"] == json.loads(explained.out)["answer"]
    page = heedmap(
        "picture", run.folder, "A dull plot.", "--variant", name, "--out", tmp_path / "page.html"
    )
    assert page.code == 0, page.err
    assert (tmp_path / "page.html").stat().st_size > 1000


def test_every_command_refuses_an_unknown_variant_and_a_model_that_is_no_run(made, heedmap):
    run, names, _ = made
    for command in (
        ("audit", "--run", run.folder),
        ("explain", run.folder, "A text."),
        ("picture", run.folder, "A text."),
    ):
        done = heedmap(*command, "--variant", "adversary")
        assert done.code == 2
        assert f"--variant adversary: expected one of those of {run.folder}" in done.err
    no_run = run.folder.parent
    for command in ("explain", "picture"):
        done = heedmap(command, no_run, "A text.", "--variant", names["twin"])
        assert done.code == 2
        assert "no run there" in done.err
    with refused("variant", "run's folder", "Run"):
        hm.explain(run, "A text.", variant=names["twin"])


def test_the_folder_of_an_audited_run_is_its_own(made, heedmap, tmp_path):
    run, _, _ = made
    done = heedmap("audit", "--run", run.folder, "--out", tmp_path / "elsewhere")
    assert done.code == 2
    assert "--out" in done.err
    assert "own folder" in done.err
    assert not (tmp_path / "elsewhere").exists()


def test_names_are_listed_and_an_unknown_one_names_those_that_exist(made):
    run, names, _ = made
    assert set(names.values()) <= set(describe(run.folder).variants)
    with refused("--variant adversary", names["adversary"], names["twin"]):
        hm.open_run(run.folder, variant="adversary")


def test_a_run_without_variants_says_what_trains_them(tmp_path):
    run = train(load("reviews", train_texts=60, test_texts=20), out=tmp_path / "run", **SIZES)
    with refused("--variant x", "none yet", "heedmap retrain"):
        hm.open_run(run.folder, variant="x")


def test_an_outcome_of_an_earlier_version_is_read_and_not_opened(made, tmp_path):
    run, names, outcomes = made
    copy = tmp_path / "run"
    shutil.copytree(run.folder, copy)
    (path,) = copy.glob(f"retrained/*/{names['adversary']}.parquet")
    table = pq.read_table(path)
    about = json.loads(table.schema.metadata[b"about"])
    about = {key: about[key] for key in ("dev", "epoch", "epochs")}
    write_table(path, table.replace_schema_metadata({"about": json.dumps(about)}))
    opened = hm.open_run(copy)
    test = opened.corpus.splits["test"]
    base = base_of(opened.model, opened.corpus, opened.settings, test, RunFolder(copy).retrained)
    outcome = base.outcome(OPENED["adversary"])
    assert np.array_equal(outcome.logits, outcomes["adversary"].logits)
    with refused(path, "earlier version", "delete it"):
        hm.open_run(copy, variant=names["adversary"])


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        ("adversary", "a trained adversary"),
        ("deceptive", "penalised for showing some words"),
        ("guided by uniform weights", "a guided model"),
    ],
)
def test_the_card_of_a_variant_says_in_words_what_it_is_and_claims_no_rates(
    made, kind, words, tmp_path
):
    run, names, _ = made
    kept = keep_variant(
        hm.open_run(run.folder, variant=names[kind]), tmp_path / "variant", overwrite=False
    )
    audit = hm.audit(kept, permutations=5, progress=False)
    told = dict(facts(audit))["variant"]
    assert names[kind] in told
    assert f"for the run {Path(run.folder).name}" in told
    assert words in told
    assert "on none like this one" in audit.bottom_line.rates
    elsewhere = "whether the model could have learned to attend elsewhere"
    assert elsewhere not in audit.bottom_line.not_tested
    assert elsewhere not in dict(facts(audit))["not tested"]
    page = (kept.folder / "report.html").read_text(encoding="utf-8")
    assert words in page
    assert "models of this kind" not in page
    assert "variant" not in dict(facts(hm.audit(run, permutations=5, progress=False)))


@pytest.mark.parametrize(
    ("kind", "words", "has_rates"),
    [
        ("seed", "an ordinary one with seed 2", True),
        ("twin", "a uniform twin", False),
    ],
)
def test_the_card_of_another_training_names_its_run_and_says_whether_the_rates_hold(
    made, kind, words, has_rates, tmp_path
):
    run, names, _ = made
    kept = keep_variant(
        hm.open_run(run.folder, variant=names[kind]), tmp_path / "variant", overwrite=False
    )
    audit = hm.audit(kept, permutations=5, progress=False)
    told = dict(facts(audit))["variant"]
    assert f"for the run {Path(run.folder).name}" in told
    assert words in told
    assert words in (kept.folder / "report.html").read_text(encoding="utf-8")
    assert ("its rates are not those of" not in audit.bottom_line.rates) == has_rates
    # The parent is a place: the run is that of its settings, and another place of it changes nothing.
    settings = hm.open_run(kept.folder).settings
    assert settings.parent == str(run.folder)
    alone = settings.model_copy(update={"parent": None})
    assert settings_hash(alone) == settings_hash(settings)
    assert identity(alone, "", ()) == identity(settings, "", ())
    assert differences(settings, alone) == []
