"""Changed keys and weights at the attention hook, against attention written out by hand."""

import math
from collections import Counter

import pytest
import torch
from entmax import entmax15, sparsemax
from torch import nn
from transformers import BertConfig, BertForSequenceClassification, GPT2Config
from transformers import GPT2ForSequenceClassification as Gpt2
from wording import refused

from heedmap.huggingface.attention_hook import NAME, Call, visiting
from heedmap.huggingface.interventions import (
    Activation,
    Chain,
    Intervention,
    KeyAdversary,
    Keys,
    ShuffledKeys,
    Uniform,
    rearrangement,
)
from heedmap.huggingface.recording import Recorder, distances, key_distance

LAYERS, HEADS, SIZE = 3, 2, 12


def seeded(make):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return make()


@pytest.fixture(scope="module")
def bert():
    config = BertConfig(
        vocab_size=30, hidden_size=SIZE, num_hidden_layers=LAYERS, num_attention_heads=HEADS,
        intermediate_size=16, max_position_embeddings=16, initializer_range=0.6, num_labels=2,
    )  # fmt: skip
    model = seeded(lambda: BertForSequenceClassification(config)).eval().requires_grad_(False)
    model.set_attn_implementation(NAME)
    return model


@pytest.fixture(scope="module")
def inputs():
    mask = torch.tensor([[1] * 7, [1] * 4 + [0] * 3])
    ids = torch.randint(1, 30, (2, 7), generator=torch.Generator().manual_seed(1)) * mask
    return {"input_ids": ids, "attention_mask": mask}


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def record(model, inputs, *links):
    recorder = Recorder()
    with torch.no_grad(), visiting(model, Chain(*links, recorder)):
        logits = model(**inputs).logits
    return logits, recorder


def softmax_attention(scores):
    """A layer's call and its eager function, for scores as they are: values are the identity."""
    size = scores.shape[-1]
    value = torch.eye(size).expand(*scores.shape[:2], size, size)
    call = Call(0, "layer", scores, value, value)

    def eager(key=None, dropout=0.0):
        weights = scores.softmax(-1)
        return (weights @ value).transpose(1, 2), weights

    return call, eager


VECTOR = torch.tensor([-2.0, 0.0, 0.5])


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("softmax", [0.0486, 0.3592, 0.5922]),
        ("sparsemax", [0.0, 0.25, 0.75]),
        ("entmax15", [0.0, 0.3260, 0.6740]),
    ],
)
def test_the_specified_vector_through_its_softmax(name, expected):
    call, eager = softmax_attention(VECTOR.view(1, 1, 1, 3))
    output, weights = Activation(name).attend(call, eager)
    assert weights.flatten().tolist() == pytest.approx(expected, abs=5e-5)
    assert output.flatten().tolist() == pytest.approx(expected, abs=5e-5)


@pytest.mark.parametrize(
    ("name", "exact"),
    [("entmax15", entmax15), ("sparsemax", sparsemax), ("softmax", torch.softmax)],
)
@pytest.mark.parametrize("temperature", [0.5, 1.0, 3.0])
def test_the_map_of_log_weights_is_the_map_of_the_scores(name, exact, temperature):
    scores = 4 * torch.randn(3, 2, 5, 9, generator=generator())
    expected = exact(scores / temperature, dim=-1)
    scores_seen, eager = softmax_attention(scores)
    scores_seen = Call(0, "", scores, scores_seen.key, scores_seen.value)
    _, weights = Activation(name, temperature).attend(scores_seen, eager)
    torch.testing.assert_close(weights, expected, atol=2e-6, rtol=1e-4)


def test_gradients_are_finite_where_weights_vanish():
    weights = torch.tensor([[[[1.0, 1e-42, 0.0]]]], requires_grad=True)
    for name in ("entmax15", "sparsemax"):
        changed = Activation(name).edit_weights(Call(0, ""), weights)
        (gradient,) = torch.autograd.grad(changed[..., 0].sum(), weights)
        assert torch.isfinite(gradient).all()
        assert changed[..., 2].item() == 0


@pytest.mark.parametrize("name", ["entmax15", "sparsemax", "softmax"])
def test_masked_keys_get_nothing_and_rows_sum_to_one(bert, inputs, name):
    shuffle = ShuffledKeys(inputs["attention_mask"], generator(), "weights")
    own = Activation(name)
    for link in (own, Chain(Uniform(), own), Chain(shuffle, own)):
        _, recorder = record(bert, inputs, link)
        for weights in recorder.seen_weights.values():
            assert (weights[1, ..., 4:] == 0).all()
            torch.testing.assert_close(weights.sum(-1), torch.ones(2, HEADS, 7))


def test_a_row_masked_altogether_is_no_error():
    weights = torch.zeros(1, 1, 2, 3)
    assert (Activation("entmax15").edit_weights(Call(0, ""), weights) == 0).all()
    assert (Uniform().edit_weights(Call(0, ""), weights) == 0).all()


def test_uniform_is_even_over_real_keys_whatever_the_activation(bert, inputs):
    _, recorder = record(bert, inputs, Uniform(), Activation("sparsemax"))
    torch.testing.assert_close(
        recorder.seen_weights[2][1, ..., :4], torch.full((HEADS, 7, 4), 0.25)
    )


def test_a_causal_model_never_sees_the_future():
    config = GPT2Config(vocab_size=30, n_embd=SIZE, n_layer=2, n_head=2, n_positions=16, num_labels=2,
                        pad_token_id=0)  # fmt: skip
    model = seeded(lambda: Gpt2(config)).eval()
    model.set_attn_implementation(NAME)
    inputs = {"input_ids": torch.tensor([[3, 4, 5, 6]]), "attention_mask": torch.ones(1, 4).long()}
    for link in (Uniform(), Activation("entmax15"),
                 ShuffledKeys(inputs["attention_mask"], generator(), "weights")):  # fmt: skip
        _, recorder = record(model, inputs, link)
        assert (recorder.seen_weights[0].triu(1) == 0).all()


def test_no_edit_is_no_change(bert, inputs):
    with torch.no_grad():
        plain = bert(**inputs).logits
    for links in ((), (Intervention(),), (Activation("softmax"),), (Keys(lambda call: call.key),)):
        logits, _ = record(bert, inputs, *links)
        assert torch.equal(logits, plain)


def vectors(keys, row):
    return Counter(map(tuple, keys[row].transpose(0, 1).flatten(1).tolist()))


def test_shuffled_positions_are_the_same_keys_elsewhere(bert, inputs):
    _, clean = record(bert, inputs)
    _, after = record(bert, inputs, ShuffledKeys(inputs["attention_mask"], generator(), layers={0}))
    old, new = clean.seen_keys[0], after.seen_keys[0]
    for row in range(2):
        assert vectors(old, row) == vectors(new, row)
    assert torch.equal(old[1, :, 4:], new[1, :, 4:])  # padding stays where it is
    assert vectors(old[:, :, :4], 1) == vectors(new[:, :, :4], 1)
    assert not torch.equal(old, new)


def test_shuffled_entries_are_the_same_numbers_elsewhere(bert, inputs):
    shuffle = ShuffledKeys(inputs["attention_mask"], generator(), "entries", {0})
    _, clean = record(bert, inputs)
    _, after = record(bert, inputs, shuffle)
    old, new = clean.seen_keys[0][1], after.seen_keys[0][1]
    assert torch.equal(old[:, 4:], new[:, 4:])
    assert torch.equal(old[:, :4].flatten().sort().values, new[:, :4].flatten().sort().values)
    assert vectors(clean.seen_keys[0], 0) != vectors(after.seen_keys[0], 0)


def test_shuffled_weights_are_the_same_weights_elsewhere(bert, inputs):
    shuffle = ShuffledKeys(inputs["attention_mask"], generator(), "weights", {0})
    _, clean = record(bert, inputs)
    _, after = record(bert, inputs, shuffle)
    old, new = clean.seen_weights[0], after.seen_weights[0]
    assert torch.equal(old.sort(-1).values, new.sort(-1).values)
    assert not torch.equal(old, new)


def test_lower_layers_do_not_notice(bert, inputs):
    _, clean = record(bert, inputs)
    for link in (
        ShuffledKeys(inputs["attention_mask"], generator(), layers={1}),
        Uniform({1}),
        Activation("sparsemax", layers={1}),
    ):
        _, after = record(bert, inputs, link)
        assert torch.equal(clean.seen_weights[0], after.seen_weights[0])
        assert not torch.equal(clean.seen_weights[1], after.seen_weights[1])
        assert not torch.equal(clean.seen_weights[2], after.seen_weights[2])
        apart = distances(clean, after, inputs["attention_mask"].bool())
        assert apart.tvd.shape == (LAYERS, 2)
        assert (apart.tvd[0] == 0).all()
        assert (apart.tvd[1] > 0).all()
        assert (apart.jsd <= math.log(2)).all()


def test_a_generator_of_the_same_seed_draws_the_same(bert, inputs):
    mask = inputs["attention_mask"]
    first, again, other = (
        record(bert, inputs, ShuffledKeys(mask, generator(seed)))[0] for seed in (3, 3, 4)
    )
    assert torch.equal(first, again)
    assert not torch.equal(first, other)


@pytest.mark.parametrize("mask", [[[1, 1, 1, 1, 0]], [[0, 0, 1, 1, 1]], [[0, 0, 0]], [[1]]])
def test_a_rearrangement_leaves_masked_places_alone(mask):
    mask = torch.tensor(mask).bool()
    places = torch.arange(mask.shape[1])
    for seed in range(20):
        index = rearrangement(mask, generator(seed))[0]
        assert sorted(index.tolist()) == places.tolist()
        assert torch.equal(index[~mask[0]], places[~mask[0]])


def test_an_identity_adversary_changes_nothing(bert, inputs):
    adversary = KeyAdversary(dict.fromkeys(range(LAYERS), SIZE), hidden=2 * SIZE)
    eye = torch.eye(SIZE)
    for map_ in adversary.maps.values():  # k = relu(k) − relu(−k)
        for linear, weight in (
            (map_[0], torch.cat([eye, -eye])),
            (map_[2], torch.cat([eye, -eye], 1)),
        ):
            nn.init.zeros_(linear.bias)
            linear.weight.data.copy_(weight)
    plain, clean = record(bert, inputs)
    logits, after = record(bert, inputs, adversary.on(clean.seen_keys))
    torch.testing.assert_close(logits, plain)
    for layer in range(LAYERS):
        torch.testing.assert_close(after.seen_keys[layer], clean.seen_keys[layer])


def test_one_vector_added_to_all_keys_moves_keys_and_no_weights(bert, inputs):
    shift = 5 * torch.randn(1, HEADS, 1, SIZE // HEADS, generator=generator())
    plain, clean = record(bert, inputs)
    logits, after = record(bert, inputs, Keys(lambda call: call.key + shift))
    torch.testing.assert_close(logits, plain, atol=1e-4, rtol=1e-4)
    apart = distances(clean, after, inputs["attention_mask"].bool())
    assert (apart.key > 1).all()
    assert (apart.tvd < 1e-4).all()


def test_padding_is_no_part_of_a_distance():
    keys = torch.randn(1, 2, 5, 3, generator=generator())
    mask = torch.tensor([[True, True, True, False, False]])
    changed = keys.clone()
    changed[:, :, 3:] += 100
    assert key_distance(keys, changed, mask).item() < 1e-5
    assert key_distance(keys, torch.zeros_like(keys), mask).item() == pytest.approx(1)
    assert torch.isfinite(
        torch.autograd.grad(key_distance(keys, keys.requires_grad_(), mask).sum(), keys)[0]
    ).all()


def test_dropout_comes_after_the_new_map_and_does_not_spoil_it(bert, inputs):
    bert.config.attention_probs_dropout_prob = 0.5
    bert.train()
    try:
        seen = []

        class Look(Activation):
            def edit_weights(self, call, weights):
                seen.append((call.dropout, weights.sum(-1)))
                return super().edit_weights(call, weights)

        outputs = []
        with torch.random.fork_rng():
            for seed in (0, 0, 1):
                torch.manual_seed(seed)
                with visiting(bert.bert, Look("entmax15")):
                    outputs.append(bert.bert(**inputs).last_hidden_state)
    finally:
        bert.eval()
    assert all(dropout > 0 for dropout, _ in seen)
    for _, sums in seen:
        torch.testing.assert_close(sums, torch.ones_like(sums))
    assert torch.equal(outputs[0], outputs[1])
    assert not torch.equal(outputs[0], outputs[2])


def test_bad_input_is_said(bert, inputs):
    with refused("softmax, entmax15, sparsemax", "'hardmax'"):
        Activation("hardmax")
    with refused("temperature", "above 0", "0.0"):
        Activation("softmax", temperature=0.0)
    with refused("positions, weights or entries", "'all'"):
        ShuffledKeys(inputs["attention_mask"], generator(), reading="all")
    with refused("(2, 2, 7, 6)", "(1, 2, 7, 6)"):
        record(bert, inputs, Keys(lambda call: call.key[:1]))
    with refused("layer", "attention interface"):
        Activation("entmax15").attend(Call(0, "layer"), lambda: None)


def test_what_is_not_edited_is_the_layers_own_output_and_not_made_again():
    call, eager = softmax_attention(VECTOR.view(1, 1, 1, 3))
    own = eager()
    output, weights = Intervention().attend(call, lambda key=None, dropout=0.0: own)
    assert output is own[0]
    assert weights is own[1]


@pytest.mark.parametrize("name", ["entmax15", "sparsemax"])
def test_a_map_is_taken_in_single_precision_at_least(name):
    exact = {"entmax15": entmax15, "sparsemax": sparsemax}[name]
    scores = 2 * torch.randn(3, 2, 5, 9, generator=generator(), dtype=torch.float64)
    call = Call(0, "layer", scores, scores, scores)
    double = Activation(name).edit_weights(call, scores.softmax(-1))
    assert double.dtype == torch.float64
    torch.testing.assert_close(double, exact(scores, dim=-1), atol=1e-12, rtol=0)
    low = scores.softmax(-1).bfloat16()
    found = Activation(name).edit_weights(call, low)
    assert torch.equal(found, Activation(name).edit_weights(call, low.float()).bfloat16())


def test_keys_of_another_precision_are_taken_in_the_models(bert, inputs):
    logits, _ = record(bert, inputs, Keys(lambda call: 2 * call.key))
    wide, _ = record(bert, inputs, Keys(lambda call: 2 * call.key.double()))
    assert torch.equal(wide, logits)
