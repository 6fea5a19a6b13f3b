"""Our models of bags against fresh transcriptions of the published layers in plain torch."""

import numpy as np
import pytest
import torch
from torch import nn

import heedmap as hm
from heedmap.data.item_vocabulary import ItemVocabulary
from heedmap.importance import deletions, leave_one_out_alone
from heedmap.importance.deletions import reread_kept, reread_under, reread_without_each
from heedmap.importance.leave_one_out import logits_without_each, logits_without_each_under
from heedmap.models.attention_classifier import TextClassifier
from heedmap.models.encoders import MLP
from heedmap.models.per_class_classifier import PerClassClassifier
from heedmap.settings.models import ModelSettings

WIDTH, HIDDEN = 6, 8
TOLERANCE = 1e-5


class Published(nn.Module):
    """Attention pooling as Ilse et al. (2018, eq. 8 and 9) and Lu et al. (2021) write it, of one bag."""

    def __init__(self, *, score, encoder, rows, classes):
        super().__init__()
        size = WIDTH if encoder == "none" else HIDDEN
        self.fc = None if encoder == "none" else nn.Linear(WIDTH, HIDDEN)
        self.V = nn.Linear(size, size // 2)
        self.U = nn.Linear(size, size // 2) if score == "gated" else None
        self.w = nn.Linear(size // 2 if score != "dot" else size, rows, bias=False)
        self.classifiers = nn.Linear(size, classes)

    def forward(self, bag, imposed=None):
        h = bag if self.fc is None else torch.relu(self.fc(bag))
        if isinstance(self.w, nn.Linear) and self.w.in_features == h.shape[1]:
            scores = self.w(h) / h.shape[1] ** 0.5
        else:
            a = torch.tanh(self.V(h))
            scores = self.w(a if self.U is None else a * torch.sigmoid(self.U(h)))
        A = torch.softmax(scores.T, dim=1) if imposed is None else imposed
        M = A @ h
        if len(A) == 1:
            return self.classifiers(M)[0], A
        W, b = self.classifiers.weight, self.classifiers.bias
        return torch.stack([W[c] @ M[c] + b[c] for c in range(len(W))]), A


def make(score, encoder, maps, classes=3):
    torch.manual_seed(3)
    rng = np.random.default_rng(2)
    sizes = [1, 2, 5, 3] * 10
    bags = [rng.normal(size=(size, WIDTH)).astype(np.float32) for size in sizes]
    corpus = hm.load_bags(bags, [str(i % classes) for i in range(40)])
    settings = ModelSettings(
        score=score, encoder=encoder, maps=maps, embedding_size=WIDTH, hidden_size=HIDDEN
    )
    kind = TextClassifier if maps == "shared" else PerClassClassifier
    model = kind(settings, ItemVocabulary(corpus.vectors), corpus.classes).eval()
    for parameter in model.parameters():
        if parameter.requires_grad:
            nn.init.normal_(parameter, std=0.7)
    published = Published(
        score=score, encoder=encoder, rows=classes if maps == "per-class" else 1, classes=classes
    )
    with torch.no_grad():
        if encoder == "mlp":
            published.fc.load_state_dict(model.encoder.projection.state_dict())
        if score != "dot":
            published.V.load_state_dict(model.score.hidden.state_dict())
        if score == "gated":
            published.U.load_state_dict(model.score.gate.state_dict())
        published.w.load_state_dict(model.score.vector.state_dict())
        published.classifiers.load_state_dict(model.decoder.state_dict())
    # All bags: names are looked up, whatever their split.
    texts = [corpus.vectors.names(str(i)) for i in range(40)]
    return model, published, texts, [torch.from_numpy(bag) for bag in bags]


MODELS = [
    (score, encoder, maps)
    for score in ("gated", "additive", "dot")
    for encoder in ("mlp", "none")
    for maps in ("per-class", "shared")
]


@pytest.mark.parametrize(("score", "encoder", "maps"), MODELS)
def test_weights_predictions_imposed_weights_and_deletions_are_the_published_layers(
    score, encoder, maps
):
    model, published, texts, bags = make(score, encoder, maps)
    texts, bags = texts[:8], bags[:8]
    batch = model.batch(texts, range(8))
    trace = model.trace(batch)
    imposed = torch.rand(2, *trace.attention.shape) * batch.mask.unsqueeze(1)
    imposed = imposed / imposed.sum(-1, keepdim=True)
    predicted = model.predict(trace, imposed)
    differentiable = model.logits_from(model.embed(batch), batch, imposed[0])
    without = logits_without_each(model, batch, texts)
    under = logits_without_each_under(model, batch, trace, texts, imposed)
    with torch.no_grad():
        for i, bag in enumerate(bags):
            size = len(bag)
            logits, weights = published(bag)
            assert torch.allclose(trace.logits[i], logits, atol=TOLERANCE)
            assert torch.allclose(model.logits(batch)[i], logits, atol=TOLERANCE)
            assert torch.allclose(trace.attention[i, :, :size], weights, atol=TOLERANCE)
            row = logits.argmax() if maps == "per-class" else 0
            assert torch.allclose(trace.heatmap[i, :size], weights[row], atol=TOLERANCE)
            for s in range(2):
                expected = published(bag, imposed[s, i, :, :size])[0]
                assert torch.allclose(predicted[s, i], expected, atol=TOLERANCE)
            expected = published(bag, imposed[0, i, :, :size])[0]
            assert torch.allclose(differentiable[i], expected, atol=TOLERANCE)
            for j in range(size if size > 1 else 0):
                kept = torch.arange(size) != j
                assert torch.allclose(without[i, j], published(bag[kept])[0], atol=TOLERANCE)
                rest = imposed[1, i, :, :size][:, kept]
                rest = rest / rest.sum(1, keepdim=True)
                expected = published(bag[kept], rest)[0]
                assert torch.allclose(under[1, i, j], expected, atol=TOLERANCE)
        assert without[0].isnan().all()  # the only item of a bag


@pytest.mark.parametrize(("score", "encoder", "maps"), MODELS)
def test_leave_one_out_in_closed_form_is_reading_again(score, encoder, maps):
    model, _, texts, _ = make(score, encoder, maps)
    batch = model.batch(texts, range(len(texts)))
    trace = model.trace(batch)
    read = torch.nn.utils.rnn.pad_sequence(
        reread_without_each(model, texts), batch_first=True, padding_value=torch.nan
    )
    closed = logits_without_each(model, batch, texts)
    assert torch.allclose(closed, read.float(), atol=TOLERANCE, equal_nan=True)
    imposed = trace.attention.roll(1, 0).unsqueeze(0) * batch.mask.unsqueeze(1)
    again = reread_under(model, trace, texts, imposed)
    closed = logits_without_each_under(model, batch, trace, texts, imposed)
    assert torch.allclose(closed, again, atol=TOLERANCE, equal_nan=True)


@pytest.mark.parametrize(("score", "encoder", "maps"), MODELS[:4])
def test_what_is_kept_of_a_bag_is_read_in_closed_form(monkeypatch, score, encoder, maps):
    model, published, texts, bags = make(score, encoder, maps)
    rng = np.random.default_rng(0)
    masks = [rng.random((6, len(bag))) < 0.6 for bag in bags[:8]]
    for mask in masks:
        mask[:, 0] = True
    monkeypatch.setattr(leave_one_out_alone, "ELEMENTS", 4)
    closed = reread_kept(model, texts[:8], masks)
    monkeypatch.setattr(deletions, "reads_alone", lambda *_: False)
    read = reread_kept(model, texts[:8], masks)
    for bag, mask, logits, slow in zip(bags, masks, closed, read, strict=False):
        assert torch.allclose(logits, slow, atol=TOLERANCE)
        for j, is_kept in enumerate(mask):
            with torch.no_grad():
                expected = published(bag[torch.from_numpy(is_kept)])[0]
            assert torch.allclose(logits[j].float(), expected, atol=TOLERANCE)


@pytest.mark.parametrize("maps", ["shared", "per-class"])
def test_an_item_with_all_of_the_weight_costs_no_digits(maps):
    model, published, texts, bags = make("dot", "none", maps)
    with torch.no_grad():
        model.score.vector.weight.mul_(3000)  # the others' weights are 0 even in float64
        published.w.weight.mul_(3000)
        text, bag = texts[2], bags[2]
        batch = model.batch([text], [0])
        without = logits_without_each(model, batch, [text])[0]
        for j in range(len(bag)):
            expected = published(bag[torch.arange(len(bag)) != j])[0]
            assert torch.allclose(without[j], expected, atol=TOLERANCE)


def test_the_vectors_of_items_are_not_learned():
    model, *_ = make("gated", "mlp", "shared")
    assert {name for name, p in model.named_parameters() if not p.requires_grad} == {
        "embedding.weight"
    }
    assert model.embedding.weight.shape == (4, WIDTH)
    embedded = model.embed(model.batch([["0:0", "nothing:1", "0:99"]], [0]))
    assert (embedded[0, [0, 2, 3, 4]] == 0).all()
    assert (embedded[0, 1] != 0).all()


@pytest.mark.parametrize("maps", ["shared", "per-class"])
def test_training_on_bags_learns_them(maps):
    corpus = hm.load("four_bags", train_texts=200, test_texts=60)
    run = hm.train(corpus, epochs=12, learning_rate=0.01, maps=maps, progress=False)
    assert run.training.scores[run.training.best_epoch]["accuracy"] > 0.9


def test_an_mlp_sums_a_text_up_by_the_mean_of_its_states():
    encoder = MLP(3, 4)
    states = encoder(torch.randn(2, 5, 3), lengths := torch.tensor([5, 2]))
    means = [rows[:n].mean(0) for rows, n in zip(states, lengths.tolist(), strict=True)]
    assert torch.allclose(encoder.last(states, lengths), torch.stack(means))


def test_under_a_map_per_class_the_heat_map_is_that_of_the_predicted_class():
    model, _, texts, _ = make("gated", "mlp", "per-class")
    trace = model.trace(model.batch(texts, range(len(texts))))
    of_predicted = trace.attention[torch.arange(len(trace.rows)), trace.predicted]
    assert torch.equal(model.to_heatmap(trace, trace.attention[None])[0], of_predicted)
