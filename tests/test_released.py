"""A model with released weights computes what the original does: here the original, plain and slow.

Written from the papers' protocol: one text at a time, one position at a time, float64.
"""

import json
import math

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from scipy import stats
from torch.nn import functional
from wording import refused

import heedmap as hm
from heedmap.data.load import load_corpus
from heedmap.experiments.methods.kendall import kendall_tau
from heedmap.importance.gradients import gradient_importance
from heedmap.importance.leave_one_out import logits_without_each
from heedmap.measures import change_in_prediction
from heedmap.models import from_jain_wallace
from heedmap.runs.run import Run
from heedmap.settings.data import DataSettings
from heedmap.settings.run import RunSettings

KINDS = [(encoder, score) for encoder in ("lstm", "cnn", "average") for score in ("tanh", "dot")]
SPECIAL = ["<0>", "<UNK>", "<SOS>", "<EOS>"]
VOCABULARY = {word: i for i, word in enumerate([*SPECIAL, *(f"w{i:02d}" for i in range(30))])}
E, D = 6, 8


def weights(encoder, score, seed=0, outputs=1):
    """Random weights in the original's names and shapes."""
    generator = torch.Generator().manual_seed(seed)
    found = {}

    def draw(name, *shape):
        found[name] = 0.6 * torch.randn(shape, generator=generator)

    draw("encoder.embedding.weight", len(VOCABULARY), E)
    found["encoder.embedding.weight"][0] = 0
    h = 2 * D if encoder == "lstm" else D
    if encoder == "lstm":
        for way in ("", "_reverse"):
            draw(f"encoder.rnn.weight_ih_l0{way}", 4 * D, E)
            draw(f"encoder.rnn.weight_hh_l0{way}", 4 * D, D)
            draw(f"encoder.rnn.bias_ih_l0{way}", 4 * D)
            draw(f"encoder.rnn.bias_hh_l0{way}", 4 * D)
    elif encoder == "cnn":
        for i, kernel in enumerate((1, 3, 5, 7)):
            draw(f"encoder.convolutions.{i}.weight", D // 4, E, kernel)
            draw(f"encoder.convolutions.{i}.bias", D // 4)
    else:
        draw("encoder.projection.weight", D, E)
        draw("encoder.projection.bias", D)
    if score == "tanh":
        draw("decoder.attention.attn1.weight", h // 2, h)
        draw("decoder.attention.attn1.bias", h // 2)
        draw("decoder.attention.attn2.weight", 1, h // 2)
    else:
        draw("decoder.attention.attn1.weight", 1, h)
    draw("decoder.linear_1.weight", outputs, h)
    draw("decoder.linear_1.bias", outputs)
    return found


class Original:
    """The released model on one text: [SOS] words [EOS], attention on the words alone."""

    def __init__(self, weights, encoder, score):
        self.weights = {name: value.double() for name, value in weights.items()}
        self.encoder, self.score = encoder, score

    def numbers(self, text):
        return [2, *(VOCABULARY.get(word, 1) for word in text), 3]

    def embed(self, numbers):
        return self.weights["encoder.embedding.weight"][numbers]

    def states(self, embedded):
        w = self.weights
        if self.encoder == "average":
            return torch.tanh(
                embedded @ w["encoder.projection.weight"].T + w["encoder.projection.bias"]
            )
        if self.encoder == "lstm":
            forward = self.one_way(list(embedded), "")
            backward = self.one_way(list(embedded)[::-1], "_reverse")[::-1]
            return torch.stack([torch.cat(pair) for pair in zip(forward, backward, strict=True)])
        states = []
        for t in range(len(embedded)):
            windows = []
            for i, kernel in enumerate((1, 3, 5, 7)):
                total = w[f"encoder.convolutions.{i}.bias"]
                for k in range(kernel):
                    place = t + k - (kernel - 1) // 2
                    if 0 <= place < len(embedded):
                        column = w[f"encoder.convolutions.{i}.weight"][:, :, k]
                        total = total + column @ embedded[place]
                windows.append(total)
            states.append(torch.relu(torch.cat(windows)))
        return torch.stack(states)

    def one_way(self, inputs, way):
        w = {name: self.weights[f"encoder.rnn.{name}_l0{way}"] for name in
             ("weight_ih", "weight_hh", "bias_ih", "bias_hh")}  # fmt: skip
        h = c = torch.zeros(D, dtype=torch.float64)
        states = []
        for x in inputs:
            gates = w["weight_ih"] @ x + w["bias_ih"] + w["weight_hh"] @ h + w["bias_hh"]
            i, f, g, o = gates.split(D)
            c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
            h = torch.sigmoid(o) * torch.tanh(c)
            states.append(h)
        return states

    def attention(self, states):
        w = self.weights
        scores = states @ w["decoder.attention.attn1.weight"].T
        if self.score == "tanh":
            inner = torch.tanh(scores + w["decoder.attention.attn1.bias"])
            scores = inner @ w["decoder.attention.attn2.weight"].T
        else:
            scores = scores / math.sqrt(states.shape[1])
        scores = scores.squeeze(1)
        forbidden = torch.zeros(len(scores), dtype=torch.bool)
        forbidden[[0, -1]] = True
        return torch.softmax(scores.masked_fill(forbidden, -torch.inf), 0)

    def probability(self, embedded, detach=False):
        states = self.states(embedded)
        attention = self.attention(states)
        context = (attention.detach() if detach else attention) @ states
        w = self.weights
        output = w["decoder.linear_1.weight"] @ context + w["decoder.linear_1.bias"]
        return torch.sigmoid(output).squeeze(), attention

    def __call__(self, text):
        """p and the words' attention, |gradient × input| and |Δp|."""
        numbers = self.numbers(text)
        p, attention = self.probability(self.embed(numbers))
        leaf = self.embed(numbers).clone().requires_grad_()
        self.probability(leaf, detach=True)[0].backward()
        gradient = (leaf.grad * self.embed(numbers)).sum(1).abs()
        without = [
            self.probability(self.embed(numbers[:i] + numbers[i + 1 :]))[0]
            for i in range(1, len(numbers) - 1)
        ]
        change = (torch.stack(without) - p).abs()
        return p, attention[1:-1], gradient[1:-1], change


def texts_of(lengths, seed=0):
    """No word twice, so that no two tokens tie; one that is unknown."""
    rng = np.random.default_rng(seed)
    texts = [[f"w{i:02d}" for i in rng.permutation(30)[:n]] for n in lengths]
    texts[-1][2] = "never seen"
    return texts


@pytest.mark.parametrize(("encoder", "score"), KINDS)
def test_attention_prediction_gradient_and_leave_one_out_are_the_original_s(encoder, score):
    arrays = weights(encoder, score)
    original = Original(arrays, encoder, score)
    model = from_jain_wallace(arrays, VOCABULARY)
    texts = texts_of((1, 2, 3, 5, 9, 12))
    batch = model.batch(texts, range(len(texts)))
    trace = model.trace(batch)
    probability = trace.logits.softmax(-1)[:, 1]
    gradient = gradient_importance(model, batch, trace)
    without = logits_without_each(model, batch, texts)
    change = change_in_prediction(trace.logits.unsqueeze(1).expand_as(without), without)
    measures = torch.stack([trace.heatmap.double(), gradient.double(), change], 1)
    taus = kendall_tau(measures, batch.mask).tau
    for i, text in enumerate(texts):
        p, attention, by_gradient, by_deletion = original(text)
        n, slope = len(text), p * (1 - p)

        def close(found, wanted):
            return torch.allclose(found.double(), wanted, rtol=0, atol=1e-5, equal_nan=True)

        assert close(probability[i], p)
        assert close(trace.heatmap[i, :n], attention)
        assert not trace.heatmap[i, n:].any()
        # The original differentiates the probability, we its log-odds: p(1 − p) is between them.
        assert close(gradient[i, :n] * slope, by_gradient)
        assert close(gradient[i, :n], by_gradient / slope)
        assert close(change[i, :n], by_deletion)
        assert by_deletion.isnan().all() == (n == 1)
        theirs = [attention, by_gradient, by_deletion]
        if n > 1:
            wanted = [[stats.kendalltau(a, b).statistic for b in theirs] for a in theirs]
            np.testing.assert_allclose(taus[i].numpy(), wanted, atol=1e-12)


@pytest.mark.parametrize(("encoder", "score"), KINDS)
def test_both_kinds_of_files_and_a_vocabulary_in_a_file_give_the_same_model(
    encoder, score, tmp_path
):
    arrays = weights(encoder, score)
    save_file(arrays, tmp_path / "w.safetensors")
    np.savez(tmp_path / "w.npz", **{name: value.numpy() for name, value in arrays.items()})
    (tmp_path / "words.json").write_text(json.dumps(VOCABULARY))
    wanted = from_jain_wallace(arrays, VOCABULARY).state_dict()
    for name in ("w.safetensors", "w.npz"):
        model = from_jain_wallace(tmp_path / name, str(tmp_path / "words.json"), ("no", "yes"))
        assert model.classes == ["no", "yes"]
        assert model.settings.hidden_size == D
        assert not any(p.requires_grad or p.is_meta for p in model.parameters())
        found = model.state_dict()
        assert found.keys() == wanted.keys()
        assert all(torch.equal(found[key], wanted[key]) for key in wanted)


def test_the_original_s_two_files_are_written_anew_as_the_docstring_says(tmp_path):
    arrays = weights("cnn", "tanh")
    for part, file in (("encoder.", "enc.th"), ("decoder.", "dec.th")):
        own = {name.removeprefix(part): v for name, v in arrays.items() if name.startswith(part)}
        torch.save(own, tmp_path / file)
    files = (tmp_path / "enc.th", tmp_path / "dec.th")
    encoder, decoder = (torch.load(name, "cpu", weights_only=True) for name in files)
    both = {f"encoder.{name}": values for name, values in encoder.items()}
    both |= {f"decoder.{name}": values for name, values in decoder.items()}
    save_file(both, tmp_path / "w.safetensors")
    found = from_jain_wallace(tmp_path / "w.safetensors", VOCABULARY).state_dict()
    wanted = from_jain_wallace(arrays, VOCABULARY).state_dict()
    assert all(torch.equal(found[key], wanted[key]) for key in wanted)


def test_arrays_of_any_floating_point_kind_are_read_and_left_alone():
    arrays = weights("average", "dot")
    arrays["encoder.projection.bias"] = arrays["encoder.projection.bias"].bfloat16()
    kept = (
        arrays["encoder.projection.weight"].numpy().astype(">f8").T.copy().T
    )  # as others store it
    kept.flags.writeable = False
    state = torch.get_rng_state()
    numbers = {word: np.int64(i) for word, i in VOCABULARY.items()}
    model = from_jain_wallace(arrays | {"encoder.projection.weight": kept}, numbers)
    assert torch.equal(torch.get_rng_state(), state)
    with torch.no_grad():
        model.encoder.projection.weight.zero_()
        model.embedding.weight.zero_()
    assert kept.all()
    assert arrays["encoder.embedding.weight"][1:].all()


def test_words_that_are_not_numbered_are_unknown():
    model = from_jain_wallace(weights("average", "tanh"), VOCABULARY)
    assert model.vocabulary.encode(["w00", "what", "w29"]).tolist() == [2, 4, 1, 33, 3]


def refusal(*named, arrays=None, vocabulary=VOCABULARY, **options):
    arrays = weights("lstm", "tanh") if arrays is None else arrays
    with refused(*named):
        from_jain_wallace(arrays, vocabulary, **options)


@pytest.mark.parametrize(("encoder", "score"), KINDS)
def test_missing_unexpected_and_misshapen_arrays_are_refused_by_name(encoder, score):
    arrays = weights(encoder, score)
    for name, value in arrays.items():
        refusal(
            name if not name.endswith("attn2.weight") else "decoder.attention.",
            arrays={other: array for other, array in arrays.items() if other != name},
        )
        refusal(name, str((1, *value.shape)), arrays=arrays | {name: value.unsqueeze(0)})
        longer = functional.pad(value, (0, 1))
        # Where the embedding grows, the arrays that read it are the odd ones.
        odd = "encoder." if name == "encoder.embedding.weight" else name
        refusal(odd, "shape (", "got (", arrays=arrays | {name: longer})
    refusal("decoder.linear_2.bias", arrays=arrays | {"decoder.linear_2.bias": longer})


def test_names_of_no_encoder_or_of_two_are_refused():
    refusal("one encoder", "none", arrays={})
    both = weights("lstm", "dot") | weights("cnn", "dot")
    refusal("one encoder", "encoder.convolutions.0.bias", arrays=both)


def test_several_outputs_are_refused():
    refusal("decoder.linear_1.weight", "one output", "3", arrays=weights("cnn", "dot", outputs=3))


def test_a_size_too_large_for_any_memory_is_refused_before_it_is_believed():
    for size, named in ((50_000, "(200000, 50000)"), (10_000_000, "hidden_size = 10000000")):
        wide = {"encoder.rnn.weight_hh_l0": torch.zeros(1, size)}
        refusal(named, arrays=weights("lstm", "tanh") | wide)


def test_what_is_not_a_finite_floating_point_array_is_refused():
    arrays = weights("average", "dot")
    name = "encoder.projection.bias"
    refusal(name, "floating-point", "int64", arrays=arrays | {name: torch.arange(D)})
    refusal(name, "floating-point", "<U1", arrays=arrays | {name: np.array(["a"])})
    refusal(name, "finite", arrays=arrays | {name: np.array([np.nan] * D)})
    refusal(name, "finite", arrays=arrays | {name: np.array([1e300] * D)})


def test_padding_with_an_embedding_is_refused():
    arrays = weights("cnn", "tanh")
    arrays["encoder.embedding.weight"][0, 1] = 0.5
    refusal("encoder.embedding.weight", "row 0", arrays=arrays)


def test_classes_are_two_names():
    for classes in (["a"], ["a", "b", "c"], ["a", "a"], "ab"):
        refusal("classes", "two", repr(classes), classes=classes)


def test_a_vocabulary_that_does_not_fit_is_refused(tmp_path):
    def words(**changes):
        return {word: i for word, i in (VOCABULARY | changes).items() if i is not None}

    refusal("vocabulary", "0 to 33", "none for 33", vocabulary=words(w29=None))
    refusal("vocabulary", "0 to 33", "none for 0", vocabulary=words(**{"<0>": None}))
    refusal("vocabulary", "0 to 33", "34 for 'more'", vocabulary=words(more=34))
    refusal("vocabulary", "0 to 33", "-1 for 'w00'", vocabulary=words(w00=-1))
    refusal("vocabulary", "'w00' and 'w01'", "4", vocabulary=words(w01=4))
    path = tmp_path / "words.json"
    path.write_text(json.dumps(words(w03=7.0)))
    refusal("vocabulary", "'w03'", "7.0", vocabulary=path)
    for content, named in (("[1]", ["JSON object", "list"]), ("{", ["JSON"])):
        path.write_text(content)
        refusal(path, *named, vocabulary=path)
    path.write_bytes(b'{"\xff": 1}')
    refusal(path, "JSON", "0xff", vocabulary=path)
    refusal(tmp_path / "none.json", vocabulary=tmp_path / "none.json")


class Opened:
    """What a pickle would run."""

    def __reduce__(self):
        return (pytest.fail, ("a pickle was opened",))


def test_files_that_are_not_what_they_say_are_refused_and_no_pickle_is_opened(tmp_path):
    arrays = {name: value.numpy() for name, value in weights("cnn", "dot").items()}
    torch.save({"a": Opened()}, tmp_path / "w.th")
    refusal(tmp_path / "w.th", "pickle", arrays=tmp_path / "w.th")
    torch.save({"a": Opened()}, tmp_path / "torch.npz")
    np.savez(tmp_path / "object.npz", a=np.array([Opened()], dtype=object))
    np.array([Opened()], dtype=object).dump(tmp_path / "pickle.npz")
    with (tmp_path / "array.npz").open("wb") as file:
        np.save(file, arrays["decoder.linear_1.weight"])
    np.savez(tmp_path / "half.npz", **arrays)
    whole = (tmp_path / "half.npz").read_bytes()
    (tmp_path / "half.npz").write_bytes(whole[: len(whole) // 2])
    (tmp_path / "empty.npz").write_bytes(b"")
    (tmp_path / "w.safetensors").write_bytes(whole)
    names = ("object.npz", "pickle.npz", "array.npz", "half.npz", "empty.npz", "w.safetensors")
    for name in names:
        refusal(tmp_path / name, "pickle", arrays=tmp_path / name)
    for name in ("none.npz", "none.safetensors"):
        refusal(tmp_path / name, "no such file", arrays=tmp_path / name)
    refusal("floating-point", "bytes", arrays=tmp_path / "torch.npz")


def test_such_a_model_is_audited_as_the_docstring_says(tmp_path, capsys):
    arrays = weights("lstm", "tanh")
    texts = texts_of((1, 2, 3, 4, 5, 6, 7, 8, 5, 6))
    lines = [f"{' '.join(text)},{i % 2}" for i, text in enumerate(texts)]
    (tmp_path / "test.csv").write_text("text,label\n" + "\n".join(lines) + "\n")
    model = from_jain_wallace(arrays, VOCABULARY)
    data = DataSettings(source=str(tmp_path / "test.csv"), tokenizer="spaces", training=False)
    corpus = load_corpus(data, model.classes)
    settings = RunSettings(fingerprint=corpus.fingerprint(), data=data, model=model.settings)
    audit = hm.audit(Run(settings, corpus, model), permutations=10)
    assert audit.save(tmp_path / "report.html").read_text(encoding="utf-8").startswith("<!doctype")
    audit.show()
    assert "Should you heed the heat map?" in capsys.readouterr().out
    original = Original(arrays, "lstm", "tanh")
    frame = audit.to_dataframe("agreement")
    deletions = audit.to_dataframe("leave_one_out")["importance"]
    for i, text in enumerate(corpus.splits["test"].tokens):
        _, attention, gradient, change = original(text)
        np.testing.assert_allclose(deletions[i], change, atol=1e-5)
        if len(text) > 1:
            tau = stats.kendalltau(attention, gradient).statistic
            assert frame["tau_attention_gradient"][i] == pytest.approx(tau)
    with refused(tmp_path / "run", ".html"):
        audit.save(tmp_path / "run")
    assert not (tmp_path / "run").exists()
