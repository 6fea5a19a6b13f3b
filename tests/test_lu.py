"""Lu et al.'s calibration against plain loops, and a translation whose right source words are known."""

import math

import numpy as np
import pytest
import torch
from made_translations import sentences, write_tables
from scipy import stats
from torch import nn

from heedmap.counterfactual.permute import shuffled
from heedmap.data.parallel import Pairs, Parallel, load_links, load_parallel
from heedmap.data.pieces import Pieces
from heedmap.measures import entropy, jensen_shannon
from heedmap.models.transformer_translator import CrossCall, TranslatorSettings
from heedmap.papers.kit.alignment import Counts
from heedmap.papers.kit.made_language import made_corpus, positions
from heedmap.papers.kit.translators import NO_TARGET, Encoded
from heedmap.papers.lu import measures, reading
from heedmap.papers.lu.calibration import (
    CalibratedTranslator,
    calibrated,
    normalised,
    perturbed,
)
from heedmap.papers.lu.paper import PAPER, reproduce
from heedmap.papers.lu.settings import FUSIONS, LuSettings
from heedmap.papers.lu.training import CalibrationObjective, next_symbols, schedule

SIZES = TranslatorSettings(size=8, heads=2, layers=2, feed_forward=12, dropout=0.0)
TINY = {
    "vocabulary": 60, "size": 8, "heads": 2, "layers": 2, "feed_forward": 8, "dropout": 0.1,
    "batch_tokens": 64, "updates": 3, "warm_up": 2, "train_pairs": 40, "bleu_pairs": 4, "beams": 2,
    "aligned_pairs": 10, "seeds": 2, "learning_rate": 1e-2,
}  # fmt: skip
CALIBRATED = FUSIONS[1:]


@pytest.fixture(scope="module")
def pairs():
    source = [["ba", "be"], ["ba"], ["bo", "bi", "be", "ba"], ["be", "be", "bu"]]
    target = [["be", "ba"], ["ba"], ["ba", "be", "bi", "bo"], ["bu", "be", "be"]]
    links = [{(len(s) - 1 - j, j) for j in range(len(s))} for s in source]
    return Pairs(source, target, links, links)


@pytest.fixture(scope="module")
def pieces(pairs):
    return Pieces.learned((*pairs.source, *pairs.target), 60)


@pytest.fixture(scope="module")
def encoded(pairs, pieces):
    return Encoded.of(pairs, pieces)


def made(fusion, symbols, seed=0, **options):
    torch.manual_seed(seed)
    model = CalibratedTranslator(SIZES, symbols, fusion, **options)
    with torch.no_grad():
        for parameter in model.parameters():
            if parameter.ndim > 1:
                parameter.mul_(2)  # weights that are far from uniform
    return model.eval()


def weights_and_masks(real=(3, 1)):
    torch.manual_seed(1)
    mask = torch.arange(3) < torch.tensor(real)[:, None]
    weights = torch.randn(2, 2, 4, 3).masked_fill(~mask[:, None, None], -torch.inf).softmax(-1)
    return weights, torch.rand(2, 2, 4, 3) * mask[:, None, None], mask


def test_perturbed_and_calibrated_weights_are_those_of_plain_loops():
    weights, masks, real = weights_and_masks()
    worse, better = perturbed(weights, masks, real), calibrated(weights, masks)
    for b in range(2):
        size = int(real[b].sum())
        for h in range(2):
            for t in range(4):
                row = weights[b, h, t].tolist()
                mean = sum(row[:size]) / size
                for s in range(3):
                    m = masks[b, h, t, s].item()
                    expected = m * row[s] + (1 - m) * mean if s < size else 0.0
                    assert worse[b, h, t, s].item() == pytest.approx(expected, abs=1e-6)
                    assert better[b, h, t, s].item() == pytest.approx(row[s] * math.exp(1 - m))


def released_parts(model, layer, inputs, states, real):
    """Return weights a, masks m and gate g of a released layer, sentence by sentence and head by head."""
    cross, calibration = model.translator.decoder[layer].cross_attention, model.calibration
    scale = 4**-0.5  # of 4 units for each head
    weights, masks, gates = [], [], []
    for b, h in np.ndindex(len(inputs), 2):
        head = slice(4 * h, 4 * h + 4)
        scaled = cross.query(inputs[b])[:, head] * scale  # what the release calls its queries
        scores = scaled @ cross.key(states[b])[:, head].T
        weights.append(scores.masked_fill(~real[b], -math.inf).softmax(-1))
        scaled_of_masks = calibration.queries[layer](inputs[b])[:, head] * scale
        scores = scaled_of_masks @ calibration.keys[layer](states[b])[:, head].T
        masks.append(scores.masked_fill(~real[b], -math.inf).sigmoid())
        if calibration.fusion == "gated":
            gates.append(calibration.gates[layer](scaled).sigmoid())
    shape = (len(inputs), 2, inputs.shape[1], -1)
    return [torch.stack(parts).view(shape) if parts else None for parts in (weights, masks, gates)]


def released_fusion(fusion, weights, masks, gate):
    other = weights * (1 - masks).exp()
    if fusion == "fixed":
        return weights + 0.1 * other
    share = math.exp(-150_000 / 10**5) if fusion == "annealed" else gate
    return share * weights + (1 - share) * other


@pytest.mark.parametrize("renormalise", [False, True])
@pytest.mark.parametrize("fusion", CALIBRATED)
@torch.no_grad()
def test_fused_weights_are_those_of_the_released_layer(fusion, renormalise):
    model = made(fusion, 12, renormalise=renormalise)
    inputs, states = torch.randn(2, 5, 8), torch.randn(2, 3, 8)
    real = torch.tensor([[True, True, True], [True, False, False]])
    fused = []

    def record(call):
        fused.append(model.hook(call))
        return fused[-1]

    model.translator.decoder[1].cross_attention(inputs, states, real, record)
    expected = released_fusion(fusion, *released_parts(model, 1, inputs, states, real))
    if renormalise:
        expected = expected / expected.sum(-1, keepdim=True)
    torch.testing.assert_close(fused[0], expected)
    assert bool((fused[0].sum(-1) > 1).all()) is not renormalise


def test_annealing_ends_where_the_released_code_does():
    model = made("annealed", 12)
    calibration = model.calibration
    weights, masks, real = weights_and_masks()
    call = CrossCall(0, torch.zeros(2, 4, 8), torch.zeros(2, 3, 8), real, weights, weights)
    at_inference = calibration.fused(call, masks)
    calibration.train()
    calibration.progress = 0.0
    torch.testing.assert_close(calibration.fused(call, masks), weights)
    calibration.progress = 1.0
    torch.testing.assert_close(calibration.fused(call, masks), at_inference)


def test_cross_attention_is_torch_s_own():
    model = made("none", 12)
    cross = model.translator.decoder[0].cross_attention
    theirs = nn.MultiheadAttention(8, 2, batch_first=True)
    parts = (cross.query, cross.key, cross.value)
    with torch.no_grad():
        theirs.in_proj_weight.copy_(torch.cat([part.weight for part in parts]))
        theirs.in_proj_bias.copy_(torch.cat([part.bias for part in parts]))
        theirs.out_proj.load_state_dict(cross.output.state_dict())
    inputs, states = torch.randn(2, 4, 8), torch.randn(2, 3, 8)
    real = torch.tensor([[True, True, True], [True, False, False]])
    calls = []

    def record(call):
        calls.append(call)
        return call.weights

    output = cross(inputs, states, real, record)
    expected, weights = theirs(inputs, states, states, ~real, average_attn_weights=False)
    torch.testing.assert_close(output, expected)
    torch.testing.assert_close(calls[0].weights, weights)


@torch.no_grad()
def test_padding_and_later_words_change_nothing(encoded, pieces):
    for fusion in FUSIONS:
        model = made(fusion, len(pieces))
        source, lengths, inputs, targets = encoded.batch([0, 1, 2, 3])
        together = model(source, inputs, lengths)[0]
        for row in range(4):
            alone = reading.read_sentence(model, encoded, row).logits
            torch.testing.assert_close(together[row, : len(alone)], alone, atol=1e-5, rtol=1e-4)
            start = model(*(encoded.batch([row])[part] for part in (0, 2)))[0][0, :1]
            first = model(encoded.batch([row]).source, inputs[row : row + 1, :1])[0][0]
            torch.testing.assert_close(start, first, atol=1e-5, rtol=1e-4)
        assert (targets == NO_TARGET).any()


def objective(model, encoded, **options):
    settings = LuSettings.of(fingerprint="", source="a", target="b", **{**TINY, **options})
    return CalibrationObjective(model, encoded, encoded, settings, seed=0, made_with={})


@pytest.mark.parametrize("fusion", CALIBRATED)
def test_the_gradients_are_those_of_the_released_training_step(fusion, encoded, pieces):
    """Two backward passes with the other parameters frozen by name, then all gradients by the sub-words."""
    model = made(fusion, len(pieces))
    batch = encoded.batch([0, 2, 3])
    source, lengths, inputs, targets = batch
    # Of the pairs of positions some have a padded source, and some a padded target.
    assert lengths.min() < source.shape[1]
    assert (targets == NO_TARGET).any()
    weight = 5.0  # of the penalty, so that it shows
    loss = objective(model, encoded, penalty=weight).loss(model, batch)
    loss.backward()
    found = {name: parameter.grad.clone() for name, parameter in model.named_parameters()}
    model.zero_grad()

    def is_of_masks(name):
        return name.startswith(("calibration.queries", "calibration.keys"))

    def freeze(of_masks):
        for name, parameter in model.named_parameters():
            parameter.requires_grad_(is_of_masks(name) is of_masks)

    masks = []

    def calibrate(call):
        parts = released_parts(model, call.layer, call.inputs, call.states, call.real)
        masks.append(parts[1])
        return released_fusion(fusion, *parts)

    def worsen(call):
        weights, layer_masks, _ = released_parts(
            model, call.layer, call.inputs, call.states, call.real
        )
        return perturbed(weights, layer_masks, call.real)

    def summed(logits):
        logarithms = logits.log_softmax(-1)
        total = 0.0
        for b, t in np.ndindex(*targets.shape):
            if targets[b, t] != NO_TARGET:
                of_target = -logarithms[b, t, targets[b, t]]
                total = total + 0.9 * of_target - 0.1 * logarithms[b, t].mean()
        return total

    encoder_states = model.translator.encode(source, lengths)
    of_model, of_masks = (
        summed(model.translator(source, inputs, lengths, hook, encoder_states))
        for hook in (calibrate, worsen)
    )
    of_masks = weight * torch.norm(1 - torch.stack(masks), p=2) / source.shape[1] - of_masks
    freeze(True)
    of_masks.backward(retain_graph=True)
    freeze(False)
    of_model.backward()
    count = sum(len(encoded.target[row]) for row in (0, 2, 3))
    torch.testing.assert_close(loss, (of_model + of_masks) / count)
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(found[name], parameter.grad / count, atol=1e-6, rtol=1e-3)


def test_the_learning_rate_rises_and_falls(encoded, pieces):
    trained = objective(made("annealed", len(pieces)), encoded, warm_up=4)
    rates = []
    for step in range(16):
        trained.on_step(step, 16)
        rates.append(trained.optimizer.param_groups[0]["lr"])
    assert rates[:4] == pytest.approx([0.0025, 0.005, 0.0075, 0.01])
    assert rates[15] == pytest.approx(0.01 * math.sqrt(4 / 16))
    assert trained.model.calibration.progress == 15 / 16


def test_a_batch_has_about_so_many_sub_words(encoded):
    settings = LuSettings.of(
        fingerprint="", source="a", target="b", **{**TINY, "batch_tokens": 7, "updates": 6}
    )
    mean = np.mean([len(target) for target in encoded.target])
    size, epochs = schedule(encoded, settings)
    assert size == round(7 / mean)
    assert epochs == round(6 / -(-4 // size))


@torch.no_grad()
def test_next_symbols_are_counted_one_by_one(encoded, pieces):
    model = made("fixed", len(pieces))
    right, losses = [], []
    for row in range(4):
        logits = reading.read_sentence(model, encoded, row).logits
        targets = torch.tensor(encoded.target[row])
        right += (logits.argmax(-1) == targets).tolist()
        losses += (-logits.log_softmax(-1)[torch.arange(len(targets)), targets]).tolist()
    accuracy, cross_entropy = next_symbols(model, encoded, model.hook)
    assert accuracy == pytest.approx(np.mean(right))
    assert cross_entropy == pytest.approx(np.mean(losses), rel=1e-5)


@torch.no_grad()
def test_uniform_weights_keep_the_sum_of_a_row_and_are_a_whole_mask():
    weights, masks, real = weights_and_masks()
    even = reading.evened(weights * 2, real)
    for b, size in enumerate((3, 1)):
        expected = torch.zeros(2, 4, 3)
        expected[..., :size] = 2 / size
        torch.testing.assert_close(even[b], expected)
    torch.testing.assert_close(even / 2, perturbed(weights, masks * 0, real))


def test_shuffling_keeps_the_values_of_a_row_and_the_padding():
    values = torch.arange(24.0).view(2, 3, 4)
    real = torch.tensor([True, True, True, False])
    generator = torch.Generator().manual_seed(0)
    moved = torch.stack([shuffled(values, generator, real) for _ in range(300)])
    assert (moved[..., 3] == values[..., 3]).all()
    assert (moved.sort(-1).values == values.sort(-1).values).all()
    torch.testing.assert_close(moved[..., 0].mean(0), values[..., 1], atol=0.2, rtol=0)
    assert torch.equal(shuffled(values[..., :1], generator), values[..., :1])


@torch.no_grad()
def test_leave_one_out_reads_the_source_without_a_word(encoded, pieces):
    model = made("gated", len(pieces))
    for row in (1, 2):  # of one word, and of four
        sentence = reading.read_sentence(model, encoded, row)
        changes, without_end = reading.leave_one_out(model, encoded, row, sentence)
        numbers, words = encoded.source[row], encoded.source_words[row]
        inputs = encoded.batch([row]).inputs
        for word in [*range(max(words) + 1), -1]:
            rest = [n for n, index in zip(numbers, words, strict=True) if index != word]
            logits = model(torch.tensor([rest]), inputs)[0][0]
            expected = (logits.softmax(-1) - sentence.logits.softmax(-1)).abs().sum(-1) / 2
            column = without_end if word == -1 else changes[:, word]
            torch.testing.assert_close(column, expected.double(), atol=2e-5, rtol=1e-3)


@torch.no_grad()
def test_a_word_without_cross_attention_is_read_all_the_same(encoded, pieces):
    model = made("annealed", len(pieces))
    sentence = reading.read_sentence(model, encoded, 2)
    found = reading.leave_unattended(model, encoded, 2, sentence)
    source, lengths, inputs, _ = encoded.batch([2])
    index = torch.tensor(encoded.source_words[2])
    for word in range(4):

        def without(call, word=word):
            weights = model.hook(call)
            rest = weights * (index != word)
            return rest / rest.sum(-1, keepdim=True) * weights.sum(-1, keepdim=True)

        logits = model.translator(source, inputs, lengths, without)[0]
        expected = (logits.softmax(-1) - sentence.logits.softmax(-1)).abs().sum(-1) / 2
        torch.testing.assert_close(found[:, word], expected.double(), atol=2e-5, rtol=1e-3)


@torch.no_grad()
def test_beam_search_with_one_beam_is_greedy(encoded, pieces):
    model = made("fixed", len(pieces))
    source = encoded.source[2]
    words = [Pieces.start]
    while len(words) < 8:
        best = int(model(torch.tensor([source]), torch.tensor([words]))[0][0, -1].argmax())
        if best == Pieces.end:
            break
        words.append(best)
    found = reading.translate(
        model, source, start=Pieces.start, end=Pieces.end, beams=1, length_penalty=0.6, longest=7
    )
    assert found == words[1:]


def test_no_factors_change_weights_by_more_than_the_largest_change():
    most = measures.largest_change()
    rng = np.random.default_rng(0)
    found = []
    for size in (1, 2, 3, 10):
        for _ in range(500):
            weights = torch.tensor(rng.dirichlet(np.full(size, 0.7)))
            masks = torch.tensor(rng.choice([rng.random(size), rng.integers(0, 2, size)]))
            other = normalised(calibrated(weights, masks))
            found.append(float(jensen_shannon(weights, other)))
    assert 0.95 * most < max(found) <= most


def test_the_change_by_calibration_is_that_of_single_rows(encoded, pieces):
    model = made("gated", len(pieces))
    rows = measures.weights_read(model, encoded, 0)
    numbers = {(row["quantity"], row["map"], row["layer"]): row for row in rows}
    for layer in range(2):
        entropies, changes, gains, ends = [], [], [], []
        for row in range(4):
            sentence = reading.read_sentence(model, encoded, row)
            for a, m in zip(sentence.attention[layer], sentence.masks[layer], strict=True):
                for t in range(len(a)):
                    other = a[t] * (1 - m[t]).exp()
                    other = other / other.sum()
                    entropies.append(float(entropy(a[t])))
                    changes.append(float(jensen_shannon(a[t], other)))
                    gains.append(float(entropy(other)) - entropies[-1])
            ends += sentence.attention[layer].mean(0)[:, -1].tolist()
        tau = stats.kendalltau(entropies, changes).statistic
        for quantity, map, value in (
            ("entropy", "attention", np.mean(entropies)),
            ("JSD", "calibrated", np.mean(changes)),
            ("entropy gained", "calibrated", np.mean(gains)),
            ("end", "attention", np.mean(ends)),
        ):
            assert numbers[quantity, map, layer]["value"] == pytest.approx(value, rel=1e-4)
        assert numbers["entropy and JSD, τ", "calibrated", layer]["value"] == pytest.approx(
            tau, abs=0.02
        )
        assert numbers["JSD", "calibrated", layer]["n"] == len(changes)


def test_agreement_with_leave_one_out_is_kendall_s_tau_of_words(encoded, pieces):
    model = made("none", len(pieces))
    taus = []
    for row in range(4):
        sentence = reading.read_sentence(model, encoded, row)
        changes, _ = reading.leave_one_out(model, encoded, row, sentence)
        index = torch.tensor(encoded.source_words[row])
        layer = sentence.attention[0].mean(0)
        words = [layer[:, index == word].sum(1) for word in range(changes.shape[1])]
        for mine, theirs in zip(torch.stack(words, 1), changes, strict=True):
            taus.append(stats.kendalltau(mine, theirs).statistic if len(mine) > 1 else math.nan)
    (row,) = (
        row
        for row in measures.weights_read(model, encoded, 0)
        if (row["quantity"], row["layer"]) == ("leave-one-out, τ", 0)
    )
    assert row["value"] == pytest.approx(np.nanmean(taus), abs=0.02)
    assert row["n"] == np.isfinite(taus).sum()


def test_the_error_rate_is_that_of_the_best_word_of_each_target_word(pairs, encoded, pieces):
    model = made("none", len(pieces))
    hits = total = 0
    for row, sure in enumerate(pairs.sure):
        weights = reading.read_sentence(model, encoded, row).attention.mean((0, 1))
        source_words, target_words = (
            torch.tensor(side[row]) for side in (encoded.source_words, encoded.target_words)
        )
        for j in range(len(sure)):
            of_word = weights[target_words == j].mean(0)
            best = max(range(len(sure)), key=lambda i: float(of_word[source_words == i].sum()))
            hits += 2 * ((best, j) in sure)
        total += 2 * len(sure)
    rows = measures.alignment(model, pairs, encoded, "people", 0)
    by_map = {(row["map"], row["layer"]): row for row in rows}
    assert by_map["attention", -1]["value"] == pytest.approx(1 - hits / total)
    assert by_map["best possible", -1]["value"] == 0
    assert Counts(hits, total).links == total


def test_made_translations_have_their_known_links():
    assert positions("reverse", 3).tolist() == [2, 1, 0]
    assert positions("dictionary", 3).tolist() == [1, 0, 2]
    assert positions("copy", 1).tolist() == [0]
    corpus = made_corpus("dictionary")
    test = corpus.splits["test"]
    meanings = {}
    for source, target, links in zip(test.source, test.target, test.sure, strict=True):
        assert {j for _, j in links} == set(range(len(target)))
        for i, j in links:
            assert meanings.setdefault(source[i], target[j]) == target[j]
    assert made_corpus("dictionary").fingerprint() == corpus.fingerprint()


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    write_tables(folder)
    corpus = load_parallel(folder, "de", "en", align="links:en-de")
    gold = load_links(folder, "de", "en", "sure:de-en")
    out = tmp_path_factory.mktemp("out") / "run"
    options = {"source": "de", "target": "en", "workers": 1, **TINY}
    return corpus, gold, options, reproduce(corpus, gold=gold, out=out, **options)


@pytest.mark.exhaustive
def test_a_reproduction_is_resumed_to_the_same_bytes(reproduced):
    corpus, gold, options, lu = reproduced
    names = ("result.md", "result.csv", "result.html")
    before = [(lu.folder / name).read_bytes() for name in names]
    (lu.folder / "parts" / "gated-1.parquet").unlink()
    reproduce(corpus, gold=gold, out=lu.folder, **options)
    assert [(lu.folder / name).read_bytes() for name in names] == before
    again, rows = ([repr(row) for row in side] for side in (PAPER.read(lu.folder).rows, lu.rows))
    assert again == rows


@pytest.mark.slow
def test_the_result_has_every_table_claim_and_figure(reproduced):
    lu = reproduced[3]
    shown = PAPER.result(lu)
    assert lu.choices == ["automatic", "people"]
    assert len(shown.claims) == 7
    assert all(claim.verdict in ("survives", "does not", "undecided") for claim in shown.claims)
    assert [figure.key for figure in shown.figures] == [
        "lu-entropy-fixed", "lu-entropy-annealed", "lu-entropy-gated", "lu-leave-one-out", "lu-end",
        "lu-aer-automatic", "lu-aer-people",
    ]  # fmt: skip
    # The same first weights: a translator without calibration differs by its training alone.
    assert lu.shown("AER people", "none", "best possible", column="mean") == "0.000"


def test_what_it_needs_is_said_in_a_line(heedmap, tmp_path):
    write_tables(tmp_path)
    for words, said in (
        (("wmt",), "expected --data"),
        (("reverse", "--from", "de"), "--from: expected with --data alone"),
        (("reverse", "--budget", "large"), "expected quick or paper"),
        (("reverse", "--fusions", "none,none"), "expected each at most once"),
        (("reverse", "--fusions", "annealing"), "fusions"),
        (("multi30k", "--data", tmp_path, "--to", "fr"), "no column fr"),
        (("multi30k", "--data", tmp_path / "nowhere"), "nowhere"),
    ):
        found = heedmap("reproduce", "lu", *words)
        assert found.code == 2
        assert said in found.err
        assert "Traceback" not in found.err
    assert "heedmap reproduce lu reverse" in heedmap("reproduce", "lu").out


@pytest.mark.exhaustive
def test_a_translator_that_learned_to_reverse_shows_which_word_it_rests_on(tmp_path):
    """The known answer: the right source word is known, and every map that should find it does."""
    sides = {name: sentences(size, seed) for seed, (name, size) in enumerate(
        {"train": 2000, "dev": 100, "test": 100}.items()
    )}  # fmt: skip
    splits = {}
    for name, drawn in sides.items():
        linked = [{tuple(link) for link in links} for _, _, links in drawn]
        splits[name] = Pairs([s for s, _, _ in drawn], [t for _, t, _ in drawn], linked, linked)
    options = {
        **TINY, "vocabulary": 300, "size": 32, "feed_forward": 64, "dropout": 0.0, "seeds": 1,
        "train_pairs": 2000, "updates": 500, "batch_tokens": 256, "warm_up": 60, "bleu_pairs": 20,
        "learning_rate": 4e-3, "aligned_pairs": 100, "fusions": ("fixed",),
    }  # fmt: skip
    lu = reproduce(
        Parallel("reversed", splits), source="de", target="en", out=tmp_path / "run", workers=1,
        **options,
    )  # fmt: skip

    def number(quantity, map="", layer=-1, column="value"):
        (value,) = lu.by_seed(quantity, "fixed", map, layer, column).values()
        return value

    assert number("accuracy") > 0.9
    assert number("accuracy, uniform") < 0.5
    # One layer finds the right word, and calibration does not lose it.
    assert number("AER automatic", "attention", 1) < 0.2
    assert number("AER automatic", "calibrated", 1) < number("AER automatic", "attention", 1) + 0.1
    assert number("AER automatic", "attention", 1, "chance") > 0.6
    # The masks know it too, and worsen the translation more than masks elsewhere.
    assert number("AER automatic", "mask") < number("AER automatic", "mask", -1, "chance") - 0.1
    perturbed_entropy, elsewhere = (
        number("cross entropy, perturbed", column=column) for column in ("value", "chance")
    )
    assert number("cross entropy") < elsewhere < perturbed_entropy
    # And so does leave-one-out, by both ways.
    assert number("leave-one-out, τ", "attention") > 0.3
    assert number("leave-one-out, τ", "attention", -1, "ceiling") > 0.3
    assert abs(number("leave-one-out, τ", "attention", -1, "chance")) < 0.1
