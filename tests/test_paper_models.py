"""The papers' models compute what their released layers do: here these, written anew in plain PyTorch.

One text at a time, without padding, with the same weights. Jain & Wallace's single texts, which are Wiegreffe &
Pinter's too, are in test_released.py; the table of differences is docs/results/models.md.
"""

import math

import numpy as np
import pytest
import torch
from conftest import random_pairs, random_sentences, random_texts, small_corpus, small_model
from torch import nn
from torch.nn import functional

from heedmap.data.vocabulary import EOS, SOS, Vocabulary
from heedmap.huggingface.interventions import KeyAdversary
from heedmap.models.attention_classifier import TextClassifier
from heedmap.models.encoder_decoder import EncoderDecoder, EncoderDecoderSettings
from heedmap.models.encoders import CNN
from heedmap.models.hierarchical_classifier import HierarchicalClassifier
from heedmap.models.pair_classifier import IMPOSSIBLE, PairClassifier
from heedmap.models.step_decoder import StepDecoder, StepDecoderSettings
from heedmap.papers.drozdyuk.model import new_transformer
from heedmap.papers.drozdyuk.settings import DrozdyukSettings
from heedmap.papers.pruthi.sequence_task import DeceptionObjective, drawn
from heedmap.papers.pruthi.settings import MODELS, TRAINING, SequenceSettings
from heedmap.papers.serrano_smith.settings import ENCODERS as THEIR_ENCODERS
from heedmap.papers.serrano_smith.settings import SerranoSmithSettings
from heedmap.papers.serrano_smith.training import new_model
from heedmap.retraining.deception import penalty
from heedmap.settings.data import DataSettings
from heedmap.settings.models import ModelSettings
from heedmap.settings.training import TrainSettings
from heedmap.training.attention import AttentionObjective, cross_entropy, optimizer_of
from heedmap.training.objective import Progress

LENGTHS = (5, 1, 3, 8)


def bidirectional(forward, backward, kind):
    """One bidirectional layer with the weights of two of one direction."""
    both = kind(forward.input_size, forward.hidden_size, bidirectional=True, batch_first=True)
    for name, value in forward.state_dict().items():
        both.state_dict()[name].copy_(value)
    for name, value in backward.state_dict().items():
        both.state_dict()[f"{name}_reverse"].copy_(value)
    return both


def states_of(encoder, embedded):
    """Return the states (T, D) of one text's vectors (T, E), and one vector for the text."""
    name = type(encoder).__name__
    inputs = embedded.unsqueeze(0)
    if name in ("LSTM", "GRU"):
        pair = [getattr(encoder, f"{way}_{name.lower()}") for way in ("forward", "backward")]
        states, last = bidirectional(*pair, getattr(nn, name))(inputs)
        last = last[0] if name == "LSTM" else last
        return states[0], torch.cat([last[0, 0], last[1, 0]])
    if isinstance(encoder, CNN):
        maps = [
            functional.conv1d(inputs.mT, one.weight, one.bias, padding=one.kernel_size[0] // 2)
            for one in encoder.windows
        ]
        states = functional.relu(torch.cat(maps, 1))[0].T
        return states, None
    if name == "Average":
        return torch.tanh(
            functional.linear(embedded, encoder.projection.weight, encoder.projection.bias)
        ), None
    return embedded, None


def additive(score, states):
    inner = torch.tanh(functional.linear(states, score.hidden.weight, score.hidden.bias))
    return inner @ score.vector.weight[0]


# Jain & Wallace: pairs


def query_vector(encoder, states):
    """The last state; the maximum of each filter over the words (marks count 0); the mean over the words."""
    words = states[1:-1]
    if isinstance(encoder, CNN):
        return words.amax(0).clamp(min=0)
    return words.mean(0)


@pytest.mark.parametrize("score", ["additive", "dot"])
@pytest.mark.parametrize("encoder", ["lstm", "cnn", "average"])
@torch.no_grad()
def test_pairs_are_read_as_jain_and_wallace_s(encoder, score):
    model = small_model(encoder, score, classes=3, kind=PairClassifier)
    pairs = random_pairs(LENGTHS)
    trace = model.trace(model.batch(pairs, range(len(pairs))))
    for i, pair in enumerate(pairs):
        ids, query_ids = (
            torch.from_numpy(model.vocabulary.encode(text)) for text in (pair, pair.query)
        )
        assert ids[0] == query_ids[0] == SOS
        assert ids[-1] == query_ids[-1] == EOS
        states, _ = states_of(model.encoder, model.embedding(ids))
        asked, last = states_of(model.query.encoder, model.query.embedding(query_ids))
        q = query_vector(model.query.encoder, asked) if last is None else last
        if score == "dot":
            scores = states @ q / math.sqrt(len(q))
        else:
            hidden, other = model.score.hidden, model.score.query
            inner = states @ hidden.weight.T + hidden.bias + other.weight @ q + other.bias
            scores = torch.tanh(inner) @ model.score.vector.weight[0]
        scores[[0, -1]] = -torch.inf
        weights = scores.softmax(0)
        decoder = model.decoder
        inner = decoder.inner(weights @ states) + decoder.query(q)
        logits = decoder.outer(torch.tanh(inner))
        if pair.allowed is not None:
            logits[~torch.from_numpy(pair.allowed)] = IMPOSSIBLE
        assert torch.allclose(trace.heatmap[i, : len(pair)], weights[1:-1], atol=1e-6)
        assert torch.allclose(trace.logits[i], logits, atol=1e-6)


def test_jain_and_wallace_train_single_texts_with_l2_on_all_but_the_attention_and_pairs_on_all():
    for kind, free in ((TextClassifier, True), (PairClassifier, False)):
        model = small_model(kind=kind).requires_grad_(True)
        optimizer = optimizer_of(model, TrainSettings())
        decays = {
            id(p): group["weight_decay"]
            for group in optimizer.param_groups
            for p in group["params"]
        }
        assert optimizer.defaults["amsgrad"]
        assert optimizer.defaults["lr"] == 1e-3
        for name, parameter in model.named_parameters():
            assert decays[id(parameter)] == (0.0 if free and name.startswith("score") else 1e-5)


def test_jain_and_wallace_s_loss_is_a_sum_with_positives_weighted_by_how_rare_they_are():
    model = small_model()
    labels = np.array([0, 0, 0, 1])
    encoded = model.encoded(random_texts(LENGTHS), labels)
    outputs = torch.tensor([[0.3], [-0.2], [1.0], [0.5]])
    batch = encoded.batch(range(4))
    expected = sum(
        -math.log(torch.sigmoid(o if y else -o).item()) * (3.0 if y else 1.0)
        for o, y in zip(outputs[:, 0], labels, strict=True)
    )
    found = cross_entropy(model, encoded)(outputs, torch.zeros(4, 1, 8), batch)
    assert float(found) == pytest.approx(expected, rel=1e-6)


# Serrano & Smith


def attended(score, states):
    weights = additive(score, states).softmax(0)
    return weights, weights @ states


@pytest.mark.parametrize("kind", ["han", "flan"])
@pytest.mark.parametrize("encoder", ["rnn", "cnn", "none"])
@torch.no_grad()
def test_serrano_and_smith_s_six_are_their_layers(kind, encoder):
    hierarchical = kind == "han"
    model = small_model(
        THEIR_ENCODERS[encoder], "wide-additive", classes=5,
        kind=HierarchicalClassifier if hierarchical else TextClassifier,
    )  # fmt: skip
    texts = random_sentences((3, 1, 5)) if hierarchical else random_texts(LENGTHS)
    trace = model.trace(model.batch(texts, range(len(texts))))
    for i, text in enumerate(texts):
        if hierarchical:
            vectors = []
            for sentence in text:
                ids = torch.from_numpy(model.vocabulary.encode(sentence.split()))[1:-1]
                states, _ = states_of(model.word_encoder, model.embedding(ids))
                vectors.append(attended(model.word_score, states)[1])
            embedded = torch.stack(vectors)
        else:  # no marks at the ends
            embedded = model.embedding(torch.from_numpy(model.vocabulary.encode(text))[1:-1])
        states, _ = states_of(model.encoder, embedded)
        assert model.score.hidden.weight.shape == (states.shape[1], states.shape[1])
        weights, context = attended(model.score, states)
        logits = functional.linear(context, model.decoder.weight, model.decoder.bias)
        assert torch.allclose(trace.heatmap[i, : len(text)], weights, atol=1e-6)
        assert torch.allclose(trace.logits[i], logits, atol=1e-6)


def test_serrano_and_smith_s_models_have_the_released_sizes():
    settings = SerranoSmithSettings(fingerprint="", data=DataSettings(source="imdb"))
    vectors = torch.zeros(6, 200)
    for name, size in (("han-rnn", 100), ("flan-cnn", 100), ("han-none", 200), ("flan-none", 200)):
        model = new_model(name, ["a", "b"], vectors, ["x", "y"], settings, seed=0)
        assert model.encoder.size == size
        assert model.score.hidden.weight.shape == (size, size)
        assert model.decoder.weight.shape == (2, size)


# Pruthi et al.


@pytest.mark.parametrize("name", MODELS)
@torch.no_grad()
def test_pruthi_s_classifiers_are_a_plain_linear_score_and_an_output_per_class(name):
    torch.manual_seed(0)
    words = [f"w{i:02d}" for i in range(40)]
    model = TextClassifier(MODELS[name], Vocabulary(words), ["f", "m"]).eval()
    assert model.embedding.weight.shape[1] == 128
    assert model.score.vector.weight.shape == (1, 128)
    assert model.decoder.weight.shape == (2, 128)
    texts = random_texts(LENGTHS)
    trace = model.trace(model.batch(texts, range(len(texts))))
    for i, text in enumerate(texts):
        ids = torch.from_numpy(model.vocabulary.encode(text))[1:-1]  # no marks
        states, _ = states_of(model.encoder, model.embedding(ids))
        scores = functional.linear(states, model.score.vector.weight, model.score.vector.bias)
        weights = scores[:, 0].softmax(0)  # not divided by √128
        logits = functional.linear(weights @ states, model.decoder.weight, model.decoder.bias)
        assert torch.allclose(trace.heatmap[i, : len(text)], weights, atol=1e-6)
        assert torch.allclose(trace.logits[i], logits, atol=1e-6)


def test_pruthi_s_classifiers_start_and_are_trained_as_released():
    torch.manual_seed(0)
    corpus = small_corpus()
    model = TextClassifier(MODELS["bilstm"], Vocabulary([f"w{i}" for i in range(5000)]), ["f", "m"])
    assert model.embedding.weight[4:].std().item() == pytest.approx(1, abs=0.01)
    bounds = [(model.score.vector, 128), (model.decoder, 128), (model.encoder.forward_lstm, 64)]
    for module, size in bounds:
        for value in module.parameters():
            assert value.abs().max().item() <= 1 / math.sqrt(size) + 1e-6
    assert [m for m in model.modules() if isinstance(m, nn.Dropout)] == []
    train = model.encoded(corpus.splits["train"].tokens, corpus.splits["train"].labels)
    settings = TrainSettings.of(**TRAINING)
    objective = AttentionObjective(model, train, train, settings)
    options = objective.optimizer.defaults
    assert (options["lr"], options["betas"], options["amsgrad"]) == (1e-3, (0.9, 0.999), False)
    assert {group["weight_decay"] for group in objective.optimizer.param_groups} == {0.0}
    assert settings.min_df == 1
    # The mean of a batch of one is its sum, of two outputs, and nothing is weighted.
    batch = train.batch([0])
    outputs, _ = model(batch)
    expected = nn.CrossEntropyLoss()(outputs, batch.labels)
    assert torch.allclose(objective.loss(model, batch), expected)
    # The first of the most accurate epochs is kept, whatever its ROC AUC.
    progress = Progress(
        epochs_done=2, scores=[{"accuracy": 0.5}, {"accuracy": 0.8, "roc_auc": 0.5}], best_epoch=1
    )
    assert not objective.is_better({"accuracy": 0.8, "roc_auc": 0.9}, progress)
    assert objective.is_better({"accuracy": 0.81, "roc_auc": 0.4}, progress)
    assert not objective.is_finished(progress)


def test_pruthi_s_penalty_is_the_logarithm_of_what_is_left():
    attention = torch.tensor([[0.7, 0.2, 0.1], [0.5, 0.5, 0.0]])
    marked = torch.tensor([[1.0, 0.0, 1.0], [0.0, 0.0, 0.0]])
    found = penalty(attention, marked, torch.tensor([3, 2]))
    assert found.tolist() == pytest.approx([-math.log(1 - 0.8), 0.0], rel=1e-5)


@pytest.mark.parametrize("attention", ["learned", "uniform", "none"])
@torch.no_grad()
def test_pruthi_s_sequence_model_is_its_layers(attention):
    torch.manual_seed(0)
    settings = StepDecoderSettings(size=5, embedding=4, dropout=0.0, attention=attention)
    model = StepDecoder(settings, 9, 8).eval()
    for values in model.parameters():
        values.normal_(0, 0.7)
    decoder = nn.GRU(4 + 10, 5, batch_first=True)
    for name, value in model.decoder.state_dict().items():
        decoder.state_dict()[f"{name}_l0"].copy_(value)
    source = torch.tensor([[0, 4, 7, 3, 1]])
    read = model(source, torch.tensor([5]), 0, 4)
    outputs, ends = model.encoder(model.source(source))
    hidden = torch.tanh(model.bridge(torch.cat([ends[0], ends[1]], 1)))
    symbol = torch.tensor([0])
    for step in range(4):
        if attention == "learned":
            # One linear map of [decoder's state; encoder's state], tanh, a vector without bias.
            joint = nn.Linear(5 + 10, 5)
            joint.weight.copy_(torch.cat([model.query.weight, model.key.weight], 1))
            joint.bias.copy_(model.query.bias)
            pairs = torch.cat([hidden.unsqueeze(1).expand(1, 5, 5), outputs], 2)
            alpha = (torch.tanh(joint(pairs)) @ model.score.weight[0]).softmax(1)
        else:
            alpha = torch.full((1, 5), 0.2) if attention == "uniform" else torch.eye(5)[:1]
        context = alpha.unsqueeze(1) @ outputs
        embedded = model.target(symbol).unsqueeze(1)
        out, after = decoder(torch.cat([embedded, context], 2), hidden.unsqueeze(0))
        hidden = after[0]
        logits = model.output(torch.cat([out[:, 0], context[:, 0], embedded[:, 0]], 1))
        assert torch.allclose(read.weights[:, step], alpha, atol=1e-6)
        assert torch.allclose(read.logits[:, step], logits, atol=1e-6)
        symbol = logits.argmax(1)


def test_pruthi_s_sequence_model_has_the_released_sizes_and_keeps_the_epoch_of_the_least_cross_entropy():
    settings = SequenceSettings(task="copy")
    assert (settings.size, settings.embedding, settings.dropout) == (512, 256, 0.5)
    assert (settings.batch_size, settings.learning_rate, settings.epochs) == (128, 1e-3, 30)
    rng = np.random.default_rng(0)
    pairs = drawn("copy", 20, 5, 4, rng)
    losses = []
    for strength in (0.0, 1.0):
        torch.manual_seed(0)
        model = StepDecoder(StepDecoderSettings(size=6, embedding=5, dropout=0.0), 8, 8)
        objective = DeceptionObjective(
            model, pairs, pairs, penalty=strength, epochs=1, batch_size=4, learning_rate=1e-3,
            seed=0, made_with={},
        )  # fmt: skip
        losses.append(objective.scores()["loss"])
    assert losses[0] == losses[1]  # λ's part plays no part in it
    for name, value in model.named_parameters():
        assert ("bias" in name) == bool(value.eq(0).all())
        assert value.abs().max() < 0.06  # N(0, .01)


# Snell et al.


@pytest.mark.parametrize(
    ("settings", "heads"),
    [
        ({}, 1),
        ({"cell": "gru", "heads": 3, "shared": False}, 3),
        ({"bidirectional": True, "layers": 2, "activation": "relu", "shared": False}, 1),
    ],
    ids=["copying", "several heads", "translation"],
)
@torch.no_grad()
def test_snell_s_encoder_decoders_are_their_layers(settings, heads):
    torch.manual_seed(0)
    model = EncoderDecoder(EncoderDecoderSettings(size=6, embedding=5, **settings), 9).eval()
    source, inputs = torch.tensor([[3, 4, 5, 8, 2]]), torch.tensor([[7, 3, 4]])
    logits, weights = model(source, inputs)
    memory, state = model.encoder(model.source(source))
    if settings.get("bidirectional"):
        state = tuple(
            torch.stack([
                model.bridge(torch.cat([one[2 * layer], one[2 * layer + 1]], 1))
                for layer in range(2)
            ])
            for one in state
        )  # fmt: skip
    embedding = model.source if model.target is None else model.target
    decoded, _ = model.decoder(embedding(inputs), state)
    contexts, width = [], memory.shape[2]
    for head in range(heads):
        project = model.queries.weight[head * width : (head + 1) * width]
        alpha = ((decoded[0] @ project.T) @ memory[0].T).softmax(1)
        assert torch.allclose(weights[0, head], alpha, atol=1e-6)
        contexts.append(model.contexts[head](alpha @ memory[0]))
    joined = model.hidden(torch.cat([decoded[0], torch.stack(contexts).mean(0)], 1))
    act = torch.relu if settings.get("activation") == "relu" else torch.tanh
    assert torch.allclose(logits[0], model.output(act(joined)), atol=1e-6)


# Drozdyuk et al.: a transformer encoder; the sizes are not given


@pytest.mark.parametrize("activation", ["softmax", "entmax15"])
@torch.no_grad()
def test_drozdyuk_s_classifier_is_a_transformer_encoder_and_a_mean(activation):
    from entmax import entmax15

    settings = DrozdyukSettings.of(
        fingerprint="", data={"source": "small"}, size=8, heads=2, layers=2, feed_forward=16,
        max_length=12,
    )  # fmt: skip
    subject = new_transformer(settings, words=20, classes=2, activation=activation, seed=0)
    subject.model.eval()
    bert = subject.model.bert
    ids = torch.tensor([[2, 7, 9, 11, 3]])
    found = subject.logits({"input_ids": ids, "attention_mask": torch.ones_like(ids)})
    parts = bert.embeddings
    hidden = parts.LayerNorm(
        parts.word_embeddings(ids[0])
        + parts.position_embeddings(torch.arange(5))
        + parts.token_type_embeddings(torch.zeros(5, dtype=torch.long))
    )
    normalise = entmax15 if activation == "entmax15" else torch.softmax
    for layer in bert.encoder.layer:
        own = layer.attention.self
        query, key, value = (
            one(hidden).view(5, 2, 4).transpose(0, 1) for one in (own.query, own.key, own.value)
        )
        weights = normalise(query @ key.mT / 2.0, dim=-1)
        mixed = (weights @ value).transpose(0, 1).reshape(5, 8)
        hidden = layer.attention.output.LayerNorm(layer.attention.output.dense(mixed) + hidden)
        inner = functional.gelu(layer.intermediate.dense(hidden))
        hidden = layer.output.LayerNorm(layer.output.dense(inner) + hidden)
    assert torch.allclose(found[0], subject.model.head(hidden.mean(0)), atol=1e-6)


@torch.no_grad()
def test_drozdyuk_s_adversary_is_one_hidden_layer_of_256_with_relu():
    torch.manual_seed(0)
    adversary = KeyAdversary({0: 6})
    first, act, second = adversary.maps["0"]
    assert (first.in_features, first.out_features, second.out_features) == (6, 256, 6)
    assert isinstance(act, nn.ReLU)


def test_the_settings_of_the_papers_are_what_the_table_says():
    assert ModelSettings().embedding_size == 300
    assert ModelSettings().hidden_size == 128
    assert TrainSettings().epochs == 8
    assert TrainSettings().batch_size == 32
