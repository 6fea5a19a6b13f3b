"""Fine-tuning, on a random BERT of two layers with a vocabulary of whole words."""

import json

import numpy as np
import pytest
import torch
from conftest import contents, watched
from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors
from transformers import BertConfig, BertForSequenceClassification, PreTrainedTokenizerFast
from wording import refused, stopped

import heedmap as hm
from heedmap.data.load import load_corpus
from heedmap.errors import InputError
from heedmap.runs.folder import RunFolder
from heedmap.runs.listing import describe
from heedmap.runs.occupancy import holds_another
from heedmap.runs.saving import save_run
from heedmap.settings.data import DataSettings
from heedmap.settings.training import FineTuneSettings
from heedmap.training.fine_tune import FineTuning, _Texts, new_model, pace
from heedmap.training.fit import fit

SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
QUICK = {"epochs": 2, "learning_rate": 1e-3, "batch_size": 16}


@pytest.fixture(scope="session")
def corpus():
    return load_corpus(DataSettings(source="reviews", raw=True))


@pytest.fixture(scope="session")
def base(corpus, tmp_path_factory):
    """A folder with a pretrained model that has learned nothing, without a head for classes."""
    folder = tmp_path_factory.mktemp("models") / "tiny-bert"
    texts = corpus.splits["train"].tokens
    words = sorted({token.strip().lower() for text in texts for token in text})
    numbers = {word: i for i, word in enumerate((*SPECIAL, *words))}
    tokenizer = Tokenizer(models.WordPiece(numbers, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.Lowercase()
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.post_processor = processors.BertProcessing(("[SEP]", 3), ("[CLS]", 2))
    names = ("pad_token", "unk_token", "cls_token", "sep_token", "mask_token")
    PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        model_max_length=64,
        model_input_names=["input_ids", "token_type_ids", "attention_mask"],
        **dict(zip(names, SPECIAL, strict=True)),
    ).save_pretrained(folder)
    config = BertConfig(
        vocab_size=len(numbers), hidden_size=32, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=64, max_position_embeddings=64, initializer_range=0.05,
    )  # fmt: skip
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        BertForSequenceClassification(config).bert.save_pretrained(folder)
    return folder


@pytest.fixture
def few(tmp_path):
    """A folder of data: few texts, labels that one word gives away, case and spaces that are kept."""
    folder = tmp_path / "few"
    folder.mkdir()
    for name, count in (("train", 48), ("dev", 16), ("test", 16)):
        rows = [
            {
                "text": f"The film  is {'Wonderful' if i % 2 else 'awful'}{' indeed' * (i % 5)}.",
                "label": "good" if i % 2 else "bad",
            }
            for i in range(count)
        ]
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def predictions(run):
    texts = run.corpus.splits["test"].tokens
    return run.model.logits(run.model.batch(texts, range(len(texts))))


def weights(run):
    return run.model.model.state_dict()


class Stop(Exception):
    pass


def stop_in(epoch):
    def report(done, text):
        if f"epoch {epoch} " in text:
            raise Stop

    return report


def test_the_embedded_corpus_is_learned(base, corpus):
    sizes = {"train": 1000, "dev": 100, "test": 300}
    small = {name: split.take(range(sizes[name])) for name, split in corpus.splits.items()}
    small = hm.Corpus("reviews", corpus.classes, small, corpus.settings)
    run = hm.fine_tune(base, small, epochs=4, learning_rate=5e-3)
    labels = run.corpus.splits["test"].labels
    assert (predictions(run).argmax(1).numpy() == labels).mean() > 0.65
    assert run.model.classes == corpus.classes == ["negative", "positive"]
    assert len(run.settings.model.weights) == 16
    assert run.training.best_epoch == int(np.argmax([s["roc_auc"] for s in run.training.scores]))


def test_the_same_seed_gives_the_same_bytes_and_another_one_others(base, few, tmp_path):
    one, two, other = (
        hm.fine_tune(base, few, seed=seed, out=tmp_path / name, **QUICK)
        for seed, name in ((3, "one"), (3, "two"), (4, "other"))
    )
    assert contents(tmp_path / "one") == contents(tmp_path / "two")
    assert one.settings.model.weights == two.settings.model.weights != other.settings.model.weights


def test_training_leaves_the_global_random_state_alone(base, few):
    torch.manual_seed(5)
    before = torch.get_rng_state()
    state = np.random.get_state()[1].copy()  # noqa: NPY002 - the very thing that must not move
    hm.fine_tune(base, few, **{**QUICK, "epochs": 1})
    assert torch.equal(torch.get_rng_state(), before)
    assert (np.random.get_state()[1] == state).all()  # noqa: NPY002


def test_a_stopped_training_goes_on_to_the_same_weights(base, few, tmp_path):
    options = {**QUICK, "epochs": 3}
    whole = hm.fine_tune(base, few, **options)
    folder = tmp_path / "run"
    with pytest.raises(Stop), watched(stop_in(2)):
        hm.fine_tune(base, few, out=folder, **options)
    assert describe(folder).state == "training stopped"
    with refused("heedmap train"):
        hm.open_run(folder)
    seen = []
    with watched(lambda done, text: seen.append(round(9 * done)) if "epoch" in text else None):
        run = hm.fine_tune(base, few, out=folder, **options)
    assert seen[:6] == list(range(4, 10))
    assert all(torch.equal(value, weights(run)[name]) for name, value in weights(whole).items())
    assert run.training == whole.training
    assert not (folder / "checkpoint.safetensors").exists()


def test_a_run_opens_again_and_says_the_same(base, few, tmp_path):
    folder = tmp_path / "run"
    run = hm.fine_tune(base, few, out=folder, **QUICK)
    assert describe(folder).state == "trained"
    modes = {path.stat().st_mode for path in (folder / "model").iterdir()}
    assert modes == {(folder / "settings.toml").stat().st_mode}, "whoever reads one reads all"
    for again in (hm.open_run(folder), hm.fine_tune(base, few, out=folder, **QUICK)):
        assert torch.equal(predictions(again), predictions(run))
        assert (again.settings, again.training, again.facts) == (
            run.settings, run.training, run.facts,
        )  # fmt: skip
        assert again.corpus.left_out == run.corpus.left_out
        assert again.model.classes == ["bad", "good"]
    assert run.corpus.splits["test"].tokens[1][:3] == ["The", " film", "  is"]


@pytest.mark.parametrize("out", ["run", None])
def test_a_run_is_saved_elsewhere(base, few, tmp_path, out):
    run = hm.fine_tune(base, few, out=out and tmp_path / out, **QUICK)
    save_run(run, RunFolder(tmp_path / "copy"))
    copy = hm.open_run(tmp_path / "copy")
    assert torch.equal(predictions(copy), predictions(run))
    assert copy.training == run.training


def test_a_save_that_is_interrupted_leaves_no_half_model(base, few, tmp_path, monkeypatch):
    folder = tmp_path / "run"

    def full(self, place, *args, **kwargs):
        assert list(place.iterdir()), "the weights were written first"
        raise stop

    monkeypatch.setattr(PreTrainedTokenizerFast, "save_pretrained", full)
    for stop in (KeyboardInterrupt(), OSError(28, "No space left on device")):  # noqa: B007
        with pytest.raises((KeyboardInterrupt, InputError), match=r"No space left|^$"):
            hm.fine_tune(base, few, out=folder, **QUICK)
        assert not (folder / "model").exists()
        assert not list(folder.glob(".*"))
        assert (folder / "checkpoint.safetensors").exists()
    monkeypatch.undo()
    (folder / ".model.partial").mkdir()  # as a killed process leaves it
    with watched(stop_in(1)):
        run = hm.fine_tune(base, few, out=folder, **QUICK)
    assert (folder / "model" / "model.safetensors").exists()
    assert not list(folder.glob(".*"))
    assert torch.equal(predictions(hm.open_run(folder)), predictions(run))


def test_another_run_in_the_folder_is_refused_with_the_difference(base, few, tmp_path):
    run = hm.fine_tune(base, few, out=tmp_path / "run", **QUICK)
    with refused("(data.seed: 0 -> 1; train.seed: 0 -> 1)"):
        hm.fine_tune(base, few, out=tmp_path / "run", **QUICK, seed=1)
    folder = RunFolder(tmp_path / "run")
    assert not holds_another(folder, run.settings, overwrite=False)
    other = run.settings.model.model_copy(update={"weights": "f" * 16})
    with refused("model.weights: ", f"'{'f' * 16}'"):
        holds_another(folder, run.settings.model_copy(update={"model": other}), overwrite=False)


def test_a_model_that_was_exchanged_is_found_out(base, few, tmp_path):
    folder = tmp_path / "run"
    hm.fine_tune(base, few, out=folder, **QUICK)
    path = folder / "model" / "config.json"
    config = json.loads(path.read_text())
    config["id2label"] = {"0": "good", "1": "bad"}
    path.write_text(json.dumps(config))
    with refused("run/model/config.json", "run/manifest.json"):
        hm.open_run(folder)


def test_long_texts_are_cut_for_the_training_and_counted(base, few, tmp_path):
    run = hm.fine_tune(base, few, out=tmp_path / "run", max_positions=8, **QUICK)
    # [CLS] The film is wonderful . [SEP] are 7 positions and "indeed" is one word more, up to four times.
    longer = {"train: cut to 8 positions (kept)": 28, "dev: cut to 8 positions (kept)": 9}
    assert run.corpus.left_out == longer
    assert hm.open_run(tmp_path / "run").corpus.left_out == longer
    assert max(map(len, run.corpus.splits["test"].tokens)) == 9, "the audit reads them whole"


def test_the_tokenizer_forgets_the_limit(base, corpus):
    model, tokenizer = new_model(base, corpus.classes, 0)
    texts = _Texts(tokenizer, corpus.splits["dev"].take(range(4)), 6)
    assert texts.lengths.max() == 6
    assert tokenizer.backend_tokenizer.truncation is None
    assert tokenizer.backend_tokenizer.padding is None
    batch = texts.batch(np.array([2, 0]))
    assert batch["labels"].tolist() == corpus.splits["dev"].labels[[2, 0]].tolist()
    assert model(**{k: v for k, v in batch.items() if k != "labels"}).logits.shape == (2, 2)


def test_more_than_two_classes_get_a_head_of_their_size(base):
    stars = load_corpus(DataSettings(source="reviews-stars", raw=True))
    small = {name: split.take(range(64)) for name, split in stars.splits.items()}
    run = hm.fine_tune(base, hm.Corpus("s", stars.classes, small, stars.settings), epochs=1)
    assert predictions(run).shape == (64, 5)
    assert run.model.classes == ["1", "2", "3", "4", "5"]


def test_a_corpus_in_lower_case_is_read_as_it_was_written(base, few):
    run = hm.fine_tune(base, hm.load(few), **{**QUICK, "epochs": 1})
    assert "".join(run.corpus.splits["test"].tokens[1]) == "The film  is Wonderful indeed."
    assert run.settings.data.raw


def test_the_learning_rate_rises_and_falls():
    steps = [pace(step, 20) for step in range(20)]
    assert steps[:3] == [0.5, 1.0, 1.0]
    assert np.allclose(np.diff(steps[2:]), -1 / 18)
    assert np.isclose(steps[-1], 1 / 18)
    assert pace(0, 1) == 1.0


def test_a_training_that_diverges_says_so(base, few):
    with refused("diverged", "--learning-rate"):
        hm.fine_tune(base, few, epochs=2, learning_rate=1e30)


def test_a_damaged_checkpoint_is_one_clear_line(base, corpus, tmp_path):
    path = tmp_path / "checkpoint.safetensors"
    path.write_bytes(b"rubbish")
    split = corpus.splits["dev"].take(range(8))
    model, tokenizer = new_model(base, corpus.classes, 0)
    with refused(path, "--overwrite"):
        fit(FineTuning(model, tokenizer, split, split, FineTuneSettings(base="x")), path)


def test_a_model_that_cannot_be_audited_is_not_trained(base, few, tmp_path):
    model, tokenizer = new_model(base, ["bad", "good"], 0)
    with torch.no_grad():
        model.classifier.weight.zero_()  # no weights move its answer, as far as the verification sees
    model.save_pretrained(tmp_path / "deaf")
    tokenizer.save_pretrained(tmp_path / "deaf")
    with refused("BertForSequenceClassification"):
        hm.fine_tune(tmp_path / "deaf", few, out=tmp_path / "run")
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"epochs": 0}, ["epochs = 0", "1"]),
        ({"max_positions": 2}, ["max_positions = 2", "2 special tokens"]),
        ({"layer": 7}, ["layer from 0 to 1", "7"]),
        ({"head": 2}, ["head from 0 to 1", "2"]),
        ({"view": "side"}, ["view = 'side'", "'row'"]),
    ],
)
def test_bad_settings_are_found_before_the_training(base, few, tmp_path, options, named):
    def never(done, text):
        assert "epoch" not in text, "the training began"

    with refused(*named), watched(never):
        hm.fine_tune(base, few, out=tmp_path / "run", **{**QUICK, **options})
    assert not (tmp_path / "run").exists()


def test_the_command_trains_lists_and_audits(heedmap, base, few, tmp_path):
    run = tmp_path / "runs" / "mine"
    arguments = ("train", "--model", base, "--data", few, "--out", run)
    done = heedmap(*arguments, "--epochs", 1, "--max-positions", 8)
    assert done.code == 0, done.err
    assert "epoch 1 is best on dev" in done.out
    assert "Kept: train: cut to 8 positions: 28; dev: cut to 8 positions: 9\n" in done.out
    assert "Left out" not in done.out
    assert "trained" in heedmap("list", tmp_path / "runs").out
    other = heedmap(*arguments)
    stopped(other, run, "train.epochs: 1 -> 3")  # the defaults are those of fine-tuning
    assert "learning_rate" not in other.err


@pytest.mark.slow
def test_a_trained_run_is_audited_from_its_folder(heedmap, base, few, tmp_path):
    hm.fine_tune(base, few, out=tmp_path / "run", **QUICK)
    card = heedmap("audit", "--run", tmp_path / "run", "--permutations", 3)
    assert card.code == 0, card.err
    again = hm.fine_tune(base, few, out=tmp_path / "run", **QUICK)
    assert again.settings.audit is not None, "an audited run is still the same run"


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        (["--model", "./nowhere"], ["./nowhere"]),
        (["--model", "BASE", "--encoder", "lstm"], ["--encoder", "--model"]),
        (["--model", "BASE", "--min-df", "1", "--score", "dot"], ["--score, --min-df", "--model"]),
        (["--max-positions", "64"], ["--max-positions", "--max-tokens", "--model"]),
        (["--model", "BASE", "--max-positions", "1"], ["max_positions = 1", "2 special tokens"]),
        (["--model", "BASE", "--learning-rate", "0"], ["learning_rate = 0.0", "0"]),
    ],
)
def test_bad_options_are_one_clear_line(
    heedmap, base, few, tmp_path, monkeypatch, arguments, named
):
    monkeypatch.chdir(tmp_path)
    given = [str(base) if part == "BASE" else part for part in arguments]
    done = heedmap("train", "--data", few, *given)
    stopped(done, *named)
    assert len(done.err.strip().splitlines()) == 1
    assert not list(tmp_path.rglob("*.toml")), "nothing half-written"


@pytest.mark.exhaustive
def test_a_real_model_learns_four_classes(minilm, real_data):
    whole = load_corpus(DataSettings(source=str(real_data / "ag_news"), raw=True))
    sizes = {"train": 600, "dev": 100, "test": 200}
    small = {name: split.take(range(sizes[name])) for name, split in whole.splits.items()}
    run = hm.fine_tune(
        minilm,
        hm.Corpus("news", whole.classes, small, whole.settings),
        epochs=1,
        learning_rate=1e-4,
    )
    labels = run.corpus.splits["test"].labels
    assert (predictions(run).argmax(1).numpy() == labels).mean() > 0.45
