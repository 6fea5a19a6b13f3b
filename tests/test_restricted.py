"""Restricted transformers: what a token can see, the penalty over heads, and a fine-tuned run that deceives."""

from copy import deepcopy
from dataclasses import replace

import numpy as np
import pytest
import torch
from tiny_transformers import reviews_classifier, tiny_classifier
from transformers import BertForSequenceClassification
from wording import refused

from heedmap.data.batches import Ragged
from heedmap.data.corpus import Split
from heedmap.data.load import load
from heedmap.data.marks import marks_of
from heedmap.experiments.questions.deception import masses
from heedmap.experiments.variants import Penalty
from heedmap.huggingface.attention_hook import Visitor
from heedmap.retraining import restricted
from heedmap.retraining.restricted import DeceptiveFineTuning, MarkedTexts, restricted_pass
from heedmap.runs.audit import open_audit
from heedmap.runs.open import open_run
from heedmap.runs.retrain import retrain
from heedmap.runs.train import fine_tune
from heedmap.settings.training import FineTuneSettings

FORBIDDEN = ("great", "bad")
SETTINGS = FineTuneSettings(base="bert", epochs=1, batch_size=4)


def split_of(*texts, labels=None):
    tokens = [[" " * (i > 0) + word for i, word in enumerate(text.split())] for text in texts]
    return Split([str(i) for i in range(len(texts))], tokens, np.array(labels or [0] * len(texts)))


def marked(model, split, longest=32):
    return MarkedTexts(model, split, marks_of(split, FORBIDDEN), longest)


class Weights(Visitor):
    """Keeps the weights of every call that the visitor inside it leaves behind."""

    def __init__(self, inner):
        self.inner, self.seen = inner, []

    def attend(self, call, eager):
        output, weights = self.inner.attend(call, eager)
        self.seen.append(weights)
        return output, weights


@pytest.fixture(scope="module")
def model():
    return tiny_classifier("bert")


@torch.no_grad()
def test_it_is_transformers_own_bert_under_a_mask_of_tokens_over_tokens(model):
    """As in the released code: one text at a time, types and the mask made from the words by hand."""
    plain = BertForSequenceClassification(deepcopy(model.model.config)).eval()
    plain.load_state_dict(model.model.state_dict())
    plain.set_attn_implementation("eager")
    texts = marked(model, split_of("a great film bad .", "the plot", "bad"))
    batch, marks = texts.batch([0, 1, 2])
    logits, shown = restricted_pass(model, batch, marks)
    for at, words in enumerate(texts.tokens):
        pieces = ["[CLS]", *(word.strip() for word in words), "[SEP]"]
        ids = torch.tensor([model.tokenizer.convert_tokens_to_ids(pieces)])
        kinds = torch.tensor([piece in FORBIDDEN for piece in pieces])
        mask = kinds.unsqueeze(0) == kinds.unsqueeze(1)
        mask[:, 0], mask[0, :] = False, True
        additive = torch.zeros(mask.shape).masked_fill(~mask, -1e9)[None, None]
        told = plain(
            ids, attention_mask=additive, token_type_ids=kinds.long()[None], output_attentions=True
        )
        assert torch.allclose(logits[at], told.logits[0], atol=1e-6)
        own = told.attentions[-1][0, :, 0]
        assert torch.allclose(shown[at, :, : len(pieces)], own, atol=1e-6)
        assert not shown[at, :, len(pieces) :].any()


@pytest.mark.parametrize("architecture", ["bert", "distilbert", "albert", "gpt2", "llama"])
def test_tokens_attend_to_their_own_kind_and_only_the_read_row_to_itself(architecture):
    model = tiny_classifier(architecture)
    texts = marked(model, split_of("a great film bad", "the plot"))
    batch, marks = texts.batch([0, 1])
    inputs = model.inputs(batch)
    read = model.read_rows(inputs)
    visitor = Weights(restricted.Restriction(marks, read, model.calls[-1]))
    with torch.no_grad(), model.adapter.visiting(visitor):
        model.model(**inputs)
    assert len(visitor.seen) == len(model.calls)
    real, places = batch.real, torch.arange(marks.shape[1])
    for weights in visitor.seen:
        for text, row in enumerate(read.tolist()):
            for query in places[real[text]].tolist():
                alike = (marks[text] == marks[text, query]) & (places != row)
                may = real[text] & (alike | torch.tensor(query == row))
                if model.reads == "last":
                    may &= places <= query
                assert (weights[text, :, query, ~may] == 0).all()
                assert (weights[text, :, query, may].amax(0) > 0).all()
                assert weights[text, :, query].sum(-1) == pytest.approx(np.ones(4), abs=1e-5)


def test_no_permissible_token_carries_what_an_impermissible_one_says(model):
    """The states of the last layer but one, read at every row: only the read row and the words change."""
    states = []
    for word in FORBIDDEN:
        texts = marked(model, split_of(f"a {word} film"))
        batch, marks = texts.batch([0])
        inputs = model.inputs(batch)
        visitor = restricted.Restriction(marks, model.read_rows(inputs), model.calls[-1])
        with torch.no_grad(), model.adapter.visiting(visitor):
            states.append(model.model(**inputs, output_hidden_states=True).hidden_states[-1][0])
    changed = (states[0] - states[1]).abs().amax(-1) > 1e-6
    assert changed.tolist() == [True, *marks[0, 1:].tolist()]


def test_without_marks_and_without_restriction_of_the_read_row_nothing_else_changes(model):
    texts = marked(model, split_of("a film the"))
    batch, marks = texts.batch([0])
    assert not marks.any()
    logits, shown = restricted_pass(model, batch, marks)
    assert shown.sum(-1) == pytest.approx(np.ones((1, model.heads)), abs=1e-5)
    assert not torch.allclose(logits, model.logits(batch), atol=1e-6)  # nobody attends to [CLS]


def test_blocked_attention_is_that_to_values_of_nothing(model):
    class Nothing(restricted.Restriction):
        def attend(self, call, eager):
            if call.index == self.last:
                call = replace(call, value=call.value * ~marks[:, None, :, None])
            return super().attend(call, eager)

    texts = marked(model, split_of("a great film bad", "the plot"))
    batch, marks = texts.batch([0, 1])
    inputs = model.inputs(batch)
    visitor = Nothing(marks, model.read_rows(inputs), model.calls[-1])
    with torch.no_grad(), model.adapter.visiting(visitor):
        expected = model.model(**inputs, token_type_ids=marks.long()).logits
    blocked, shown = restricted_pass(model, batch, marks, blocked=True)
    plain, as_plain = restricted_pass(model, batch, marks)
    assert torch.allclose(blocked, expected, atol=1e-6)
    assert torch.equal(shown, as_plain)
    assert not torch.allclose(blocked[0], plain[0], atol=1e-4)
    assert torch.equal(blocked[1], plain[1])


def test_in_training_the_shown_weights_are_those_before_dropout():
    model = tiny_classifier("bert")
    for module in model.model.modules():
        if hasattr(module, "dropout_prob"):
            module.dropout_prob = 0.5
    model.model.train()
    texts = marked(model, split_of("a great film"))
    with torch.random.fork_rng():
        torch.manual_seed(0)
        _, shown = restricted_pass(model, *texts.batch([0]))
    assert shown.sum(-1) == pytest.approx(np.ones((1, model.heads)), abs=1e-5)


@pytest.mark.parametrize("heads", ["mean", "max"])
def test_the_loss_is_that_of_a_plain_loop(model, heads):
    split = split_of("a great film", "bad", "the plot", labels=[0, 1, 1])
    texts = marked(model, split)
    how = Penalty(0.7, FORBIDDEN, heads=heads)
    objective = DeceptiveFineTuning(model, texts, texts, SETTINGS, how, 0.0)
    model.model.eval()
    batch, marks = texts.batch([0, 1, 2])
    expected = 0.0
    for row in range(3):
        alone = texts.batch([row])
        logits, shown = restricted_pass(model, *alone)
        expected -= logits[0].log_softmax(-1)[split.labels[row]].item() / 3
        each = [-np.log(1 - sum(head[alone[1][0]].tolist())) for head in shown[0]]
        expected += 0.7 * (np.mean(each) if heads == "mean" else max(each)) / 3
    assert objective.loss(model.model, (batch, marks)).item() == pytest.approx(expected, abs=1e-5)


def test_mass_is_the_mean_over_heads_or_that_of_the_one_that_shows_most():
    weights = Ragged([[0.2, 0.3, 0.0, 0.6], [0.5, 0.5]])
    marks = Ragged([[0.0, 1.0], [0.0, 0.0]])
    assert masses(weights, marks)[0] == pytest.approx(0.45)
    assert masses(weights, marks, "max")[0] == pytest.approx(0.6)
    assert np.isnan(masses(weights, marks)[1])


def test_long_texts_are_cut_with_their_marks(model):
    split = split_of(" ".join(["a", "great", *["film"] * 40]), " ".join([*["film"] * 40, "bad"]))
    texts = marked(model, split, 10)
    assert texts.lengths.max() <= 10
    _, marks = texts.batch([0, 1])
    assert marks.sum(1).tolist() == [1, 0]


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A transformer fine-tuned on the reviews, in a folder, and asked to hide some of their words."""
    folder = tmp_path_factory.mktemp("restricted")
    reviews_classifier(folder / "base")
    run = fine_tune(
        folder / "base", load("reviews", train_texts=60, test_texts=24), out=folder / "run",
        epochs=1, learning_rate=1e-3,
    )  # fmt: skip
    options = {
        "seeds": 2, "forbidden": "and,the,was", "penalties": (2.0,), "heads": "both", "workers": 1,
        "instances": 24, "permutations": 2,
    }  # fmt: skip
    return run, options, retrain(run, ["deception"], **options)


@pytest.mark.exhaustive
def test_a_fine_tuned_run_is_asked_with_the_mean_and_with_the_most_of_the_heads(made):
    _, _, found = made
    frame = found.tables["deception"].to_pandas()
    assert set(zip(frame["heads"], frame["removed"], frame["strength"], strict=True)) == {
        (heads, *rest)
        for heads in ("mean", "max")
        for rest in ((True, 0.0), (False, 0.0), (False, 2.0))
    }
    control = frame[~frame["removed"] & (frame["strength"] == 0)]
    mean, most = (
        control[control["heads"] == heads]["mass"].to_numpy() for heads in ("mean", "max")
    )
    assert (np.nan_to_num(most - mean) >= 0).all()
    assert np.nanmax(most - mean) > 0
    assert frame["least"].isna().all()
    assert (frame["blocked"].isna() == frame["removed"]).all()
    unmarked = frame[~frame["removed"] & frame["mass"].isna()]
    assert (unmarked["blocked"] == unmarked["predicted"]).all()
    penalised = frame[frame["strength"] == 2]
    assert penalised["mass"].mean() < control["mass"].mean()
    (finding,) = [one for one in found.findings if one.key == "deception"]
    assert "mean of the heads" in finding.measure
    assert "of the same states" not in finding.reading + finding.meaning


def test_uniform_weights_would_be_spread_over_all_positions(made):
    run, _, found = made
    frame = found.tables["deception"].to_pandas()
    share = frame.groupby("row")["uniform"].first()
    split = run.corpus.splits["test"]
    words = ("and", "the", "was")
    for row, tokens in enumerate(split.tokens):
        batch = run.model.batch([tokens], [0])
        places = [w for w, t in enumerate(tokens) if t.strip().lower() in words]
        marked = sum(int((batch.words[0] == place).sum()) for place in places)
        if marked:
            assert share[row] == pytest.approx(marked / batch.real.sum().item())
        else:
            assert np.isnan(share[row])


def test_the_answers_are_read_back_and_nothing_is_trained_again(made, monkeypatch):
    run, options, found = made
    monkeypatch.setattr("heedmap.retraining.trainer.fit", pytest.fail)
    again = retrain(open_run(run.folder), ["deception"], **options)
    assert again.tables["deception"].equals(found.tables["deception"])
    assert "Can the model hide what it uses?" in (run.folder / "report.html").read_text()
    assert "deception" in open_audit(run.folder).tables


@pytest.mark.parametrize(
    ("names", "forbidden", "named"),
    [
        (["stability"], "and", ["stability", "deception", "deception"]),
        ([], None, ["--forbidden"]),
        (["deception"], "zzz", ["--forbidden", "zzz"]),
    ],
)
def test_bad_input_is_refused_before_anything_is_trained(
    made, names, forbidden, named, monkeypatch
):
    run, _, _ = made
    monkeypatch.setattr("heedmap.retraining.trainer.fit", pytest.fail)
    with refused(*named):
        retrain(run, names, forbidden=forbidden, seeds=2)


@pytest.mark.parametrize(
    ("architecture", "why"), [("modernbert", "mean of all rows"), ("bart", "two stacks")]
)
def test_models_that_cannot_be_restricted_are_refused(architecture, why):
    with refused("m: ", why):
        restricted.check(tiny_classifier(architecture), "m")
