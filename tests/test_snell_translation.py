"""What is read off translators, number by number against plain loops (Snell et al.)."""

import math
import re

import numpy as np
import pytest
import torch
from made_translations import WORDS, sentences, write_tables
from scipy import stats

from heedmap.data.parallel import Pairs, load_links, load_parallel
from heedmap.data.pieces import Pieces
from heedmap.measures import levelled
from heedmap.models.encoder_decoder import EncoderDecoder, EncoderDecoderSettings
from heedmap.papers.kit.alignment import baselines, by_words, counts, error_rate, links
from heedmap.papers.kit.translating import TranslationObjective, accuracy
from heedmap.papers.kit.translators import NO_TARGET, Encoded, cased_as
from heedmap.papers.snell import per_position, translation
from heedmap.papers.snell.settings import TranslationSettings
from heedmap.papers.snell.translation_result import Translation
from heedmap.papers.snell.translation_task import (
    TranslationRecorder,
    influence,
    read_sentence,
)
from heedmap.papers.snell.word_proxies import bag_of_words, dictionary

TINY = {
    "vocabulary": 60, "size": 8, "layers": 1, "batch_size": 16, "epochs": 1, "seeds": 2,
    "bleu_pairs": 3, "proxy_epochs": 1,
}  # fmt: skip


def pairs_of(count=40, seed=0):
    found = sentences(count, seed)
    linked = [{tuple(link) for link in one[2]} for one in found]
    return Pairs([one[0] for one in found], [one[1] for one in found], linked, linked)


@pytest.fixture(scope="module")
def pieces():
    return Pieces.learned((side for one in sentences(100) for side in one[:2]), 50)


@pytest.fixture(scope="module")
def encoded(pieces):
    return Encoded.of(pairs_of(), pieces)


@pytest.fixture(scope="module")
def model(pieces):
    torch.manual_seed(0)
    settings = EncoderDecoderSettings(
        size=8, embedding=6, bidirectional=True, shared=False, activation="relu", layers=2
    )
    return EncoderDecoder(settings, len(pieces)).eval().requires_grad_(False)


def test_a_batch_has_each_pair_with_its_end(encoded, pieces):
    rows = [3, 0, 7]
    batch = encoded.batch(rows)
    for i, row in enumerate(rows):
        size = len(encoded.target[row])
        assert batch.source[i, : batch.lengths[i]].tolist() == encoded.source[row]
        assert batch.targets[i, :size].tolist() == encoded.target[row]
        assert (batch.targets[i, size:] == NO_TARGET).all()
        assert batch.inputs[i, :size].tolist() == [Pieces.start, *encoded.target[row][:-1]]
    assert pieces.words(encoded.target[0]) == sentences(40)[0][1]


def test_the_loss_of_a_batch_is_the_mean_over_its_target_sub_words(model, encoded, pieces):
    objective = TranslationObjective(
        model, encoded, encoded, epochs=1, batch_size=4, learning_rate=0.1, seed=0, made_with={}
    )
    model.eval()
    found = objective.loss(model, encoded.batch([0, 1, 2]))
    losses, right = [], []
    for row in range(3):
        one = read_sentence(model, encoded, row)
        share = one.logits.log_softmax(-1)
        losses += [-share[t, y] for t, y in enumerate(one.targets.tolist())]
    assert float(found) == pytest.approx(float(sum(losses) / len(losses)), rel=1e-5)
    for row in range(len(encoded.source)):
        one = read_sentence(model, encoded, row)
        right += (one.logits.argmax(-1) == one.targets).tolist()
    assert accuracy(model, encoded) == pytest.approx(np.mean(right))
    assert objective.scores() == {"accuracy": pytest.approx(np.mean(right))}


def test_influence_is_that_of_a_gate_on_each_source_embedding(model, encoded):
    wide = model.double()
    found = influence(wide, encoded, 2)
    source, _, inputs, targets = encoded.batch([2])
    for step in range(targets.shape[1]):
        gate = torch.ones(source.shape[1], dtype=torch.float64, requires_grad=True)
        states, last = wide.encode(wide.source(source) * gate[None, :, None])
        decoded, _ = wide.decode(inputs, last)
        weights = wide.attend(decoded, states)
        logits = wide.emit(decoded, weights @ states.unsqueeze(1))[0, step]
        loss = -logits.log_softmax(-1)[targets[0, step]]
        (gradient,) = torch.autograd.grad(loss, gate)
        torch.testing.assert_close(found[step], -gradient)
    model.float()


def test_a_record_has_every_target_position(model, encoded, pieces):
    recorder = TranslationRecorder(model, encoded, encoded, pieces, None)
    test, dev = recorder.read(0)
    rows = test.to_pylist()
    assert len(rows) == sum(len(one) for one in encoded.target)
    at = 0
    for row in range(len(encoded.source)):
        one = read_sentence(model, encoded, row)
        for step, label in enumerate(encoded.target[row]):
            assert rows[at]["label"] == label
            assert rows[at]["tokens"] == [pieces.token(n) for n in encoded.source[row]]
            assert rows[at]["attention"] == pytest.approx(one.attention[step].tolist(), abs=1e-3)
            assert len(rows[at]["relevance"]) == len(encoded.source[row])
            at += 1
    assert dev.num_rows == len(rows)
    assert set(dev["split"].to_pylist()) == {"dev"}


def test_words_get_their_sub_words_weights(pieces):
    one = Encoded([[5, 6, 7, 1]], [[5, 6, 1]], [[0, 0, 1, -1]], [[0, 0, -1]])
    values = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.3, 0.2, 0.1, 0.4], [9.0, 9, 9, 9]])
    assert by_words(values, one, 0, summed=True)[0].tolist() == pytest.approx([0.4, 0.2])
    assert by_words(values, one, 0, summed=False)[0].tolist() == pytest.approx([0.25, 0.2])


def test_the_alignment_error_rate_is_that_of_och_and_ney():
    sure, possible = {(0, 0), (1, 1)}, {(0, 0), (1, 1), (2, 2)}
    assert error_rate([counts(sure, sure, possible)]) == 0
    assert error_rate([counts(possible, sure, possible)]) == 0
    # A = {0-0, 2-1}: one of two is sure and possible: 1 − (1 + 1) / (2 + 2)
    assert error_rate([counts({(0, 0), (2, 1)}, sure, possible)]) == pytest.approx(0.5)
    both = [counts({(0, 0)}, sure, possible), counts({(1, 0)}, sure, possible)]
    assert error_rate(both) == pytest.approx(1 - 2 / 6)
    assert math.isnan(error_rate([]))


def test_the_first_of_equal_source_words_is_linked():
    assert links(np.array([[0.1, 0.5, 0.4], [0.3, 0.3, 0.1]])) == [(1, 0), (0, 1)]


def test_baselines_are_what_their_names_say():
    rng = np.random.default_rng(0)
    sure = {(0, 0), (2, 1), (1, 2)}
    possible = sure | {(1, 1), (3, 2)}
    found = baselines(4, 3, sure, possible)
    drawn = [
        counts([(int(rng.integers(4)), j) for j in range(3)], sure, possible).hits
        for _ in range(4000)
    ]
    assert found["random"].hits == pytest.approx(np.mean(drawn), abs=0.05)
    assert found["random"].links == 6
    assert found["best possible"] == (6, 6)
    assert found["diagonal"] == counts([(0, 0), (1, 1), (2, 2)], sure, possible)


def test_the_dictionary_is_the_first_gradient_step_under_uniform_attention(encoded, pieces):
    """One softmax for all positions, that of the frequencies; logits M Σ_s e_s / S from M = 0."""
    symbols = len(pieces)
    every = np.concatenate(encoded.target)
    share = np.bincount(every, minlength=symbols) / len(every)
    weights = torch.zeros(symbols, symbols, dtype=torch.float64, requires_grad=True)
    bias = torch.from_numpy(np.log(np.maximum(share, 1e-300)))
    loss = torch.tensor(0.0, dtype=torch.float64)
    beside = np.zeros(symbols)
    for source, target in zip(encoded.source, encoded.target, strict=True):
        context = np.bincount(source, minlength=symbols) / len(source)
        beside += context
        logits = weights @ torch.from_numpy(context) + bias
        loss = loss - logits.log_softmax(-1)[torch.tensor(target)].sum()
    (gradient,) = torch.autograd.grad(loss, weights)
    of, to = encoded.source[4], encoded.target[4]
    expected = -gradient.numpy()[to][:, of] / beside[of]
    assert dictionary(encoded, symbols)(of, to).numpy() == pytest.approx(expected)


def test_the_dictionary_knows_words_by_the_words_beside_them():
    pieces = Pieces.learned((side for one in sentences(800) for side in one[:2]), 200)
    train = Encoded.of(pairs_of(800), pieces)
    scores = dictionary(train, len(pieces))
    words = {word: pieces.encode([word])[0] for word in [*WORDS, *WORDS.values()]}
    assert all(len(numbers) == 2 for numbers in words.values())
    of = [words[word][0] for word in WORDS]
    to = [words[word][0] for word in WORDS.values()]
    assert scores(of, to).argmax(1).tolist() == list(range(len(WORDS)))


def test_the_bag_of_words_learns_them_too():
    pieces = Pieces.learned((side for one in sentences(800) for side in one[:2]), 200)
    train = Encoded.of(pairs_of(800), pieces)
    scores = bag_of_words(train, len(pieces), 16, 60)
    of, to = ([pieces.encode([w])[0][0] for w in side] for side in (WORDS, WORDS.values()))
    found = scores(of, to)
    assert found.shape == (len(WORDS), len(WORDS))
    assert (found <= 0).all()
    assert (found.argmax(1) == torch.arange(len(WORDS))).float().mean() > 0.8


@torch.no_grad()
def test_other_weights_are_those_the_model_would_have(model, encoded):
    one = read_sentence(model, encoded, 1)
    torch.testing.assert_close(per_position.predict(model, one, one.attention[None])[0], one.logits)
    rolled = one.attention.roll(1, 1)
    expected = model.emit(one.decoded, (rolled[None, None] @ one.states.unsqueeze(1)))[0]
    torch.testing.assert_close(per_position.predict(model, one, rolled[None])[0], expected)


@torch.no_grad()
def test_leave_one_out_reads_the_source_without_each_position(model, encoded):
    one = read_sentence(model, encoded, 3)
    found = per_position.leave_one_out(model, encoded, 3, one)
    source, _, inputs, _ = encoded.batch([3])
    for out in range(source.shape[1]):
        rest = torch.cat([source[:, :out], source[:, out + 1 :]], 1)
        logits, _ = model(rest, inputs)
        expected = (one.logits.softmax(-1) - logits[0].softmax(-1)).abs().sum(-1) / 2
        torch.testing.assert_close(found[:, out], expected.double(), atol=1e-6, rtol=1e-4)


def test_an_adversary_keeps_the_prediction_and_is_within_its_bound(model, encoded):
    one = read_sentence(model, encoded, 0)
    jsd, upper = per_position.adversary(model, one, [0])
    assert ((jsd >= 0) & (jsd <= upper + 1e-6)).all()
    # The model has not learned anything: nearly all weights keep its prediction.
    assert float(jsd.mean()) > 0.8 * float(upper.mean())


def test_the_experiments_are_means_over_all_positions(model, encoded):
    few = Encoded(*(side[:3] for side in (
        encoded.source, encoded.target, encoded.source_words, encoded.target_words
    )))  # fmt: skip
    found = per_position.experiments(model, few, seed=0)
    taus, even = [], []
    for row in range(3):
        one = read_sentence(model, few, row)
        removed = per_position.leave_one_out(model, few, row, one)
        heat = levelled(one.attention, torch.ones_like(one.attention, dtype=torch.bool))
        taus += [stats.kendalltau(a, b).statistic for a, b in zip(heat, removed, strict=True)]
        flat = torch.full_like(one.attention, 1 / one.attention.shape[1])
        after = per_position.predict(model, one, flat[None])[0].softmax(-1)
        even += ((one.logits.softmax(-1) - after).abs().sum(-1) / 2).tolist()
    assert found["leave-one-out, τ"] == pytest.approx(np.nanmean(taus), abs=1e-6)
    assert found["uniform, TVD"] == pytest.approx(np.mean(even), abs=1e-6)


@pytest.fixture(scope="module")
def reproduced(tmp_path_factory):
    folder = tmp_path_factory.mktemp("corpus")
    write_tables(folder)
    corpus = load_parallel(folder, "de", "en", align="links:en-de")
    gold = load_links(folder, "de", "en", "sure:de-en")
    out = tmp_path_factory.mktemp("out") / "run"
    ends = {"source": "de", "target": "en", "workers": 1, **TINY}
    found = translation.reproduce(corpus, gold=gold, out=out, **ends)
    return corpus, gold, ends, found


@pytest.mark.exhaustive
def test_a_reproduction_is_resumed_to_the_same_bytes(reproduced):
    corpus, gold, ends, found = reproduced
    out = found.folder
    first, page = ((out / name).read_bytes() for name in ("result.md", "result.html"))
    assert {row["seed"] for row in found.rows} == {0, 1}
    (out / "parts" / "1.parquet").unlink()
    (out / "models" / "uniform-1" / "model.safetensors").unlink()
    translation.reproduce(corpus, gold=gold, out=out, **ends)
    assert (out / "result.md").read_bytes() == first
    assert (out / "result.html").read_bytes() == page


@pytest.mark.slow
def test_the_baselines_of_alignment_are_those_of_the_sentences(reproduced):
    # Every word has one link, in the opposite order: the best is perfect.
    found = reproduced[3]
    for choice in ("automatic", "people"):
        assert found.values("AER best possible", choice) == [0, 0]
        assert found.values("AER diagonal", choice)[0] > 0.5
    expected = 1 - sum(len(one[0]) / len(one[0]) for one in sentences(12, 2)) / sum(
        len(one[0]) for one in sentences(12, 2)
    )
    assert found.values("AER random", "people")[0] == pytest.approx(expected)


@pytest.mark.slow
def test_published_numbers_stand_beside_the_set_they_are_of_alone(reproduced):
    found = reproduced[3]
    text = (found.folder / "result.md").read_text()
    assert found.dataset == ""
    assert "0.310" not in text
    assert "0.663" not in text
    assert re.search(r"\| learned attention († )?\| 0\.\d+ .*\| – \|", text)


@pytest.mark.slow
def test_other_sentences_are_other_settings(heedmap, reproduced, tmp_path):
    *_, found = reproduced
    write_tables(tmp_path, count=50)
    again = heedmap("reproduce", "snell", "translation", "--data", tmp_path, "--out", found.folder)
    assert again.code == 2
    assert "other settings" in again.err


def test_people_s_sentences_are_cased_as_the_models_are():
    train, gold = Pairs([["ein"]], [["a"]]), Pairs([["Ein"]], [["A"]])
    assert cased_as(train, gold).source == [["ein"]]
    assert cased_as(gold, gold).source == [["Ein"]]


def test_what_the_part_needs_is_said_in_a_line(heedmap, tmp_path):
    write_tables(tmp_path)
    for words, said in (
        (("--data", tmp_path, "--to", "fr"), "no column fr; there are de, en"),
        (("--data", tmp_path, "--links", "links"), "expected COLUMN:de-en"),
        (("--data", tmp_path / "nowhere"), "nowhere"),
        ((), "needs texts: --data with sentences in two languages"),
        (("--data", tmp_path, "--steps", 5), "--steps: not of the part translation"),
        (("--data", tmp_path, "--gold", tmp_path / "nothing"), "nothing"),
    ):
        found = heedmap("reproduce", "snell", "translation", *words)
        assert found.code == 2
        assert said in found.err
        assert "Traceback" not in found.err


def test_published_numbers_are_found_by_the_data_set_and_not_by_a_name(tmp_path):
    def dataset(name, **settings):
        languages = {"source": "de", "target": "en", **settings}
        made = TranslationSettings.of(fingerprint="", **languages)
        return Translation(name, made, [], tmp_path).dataset

    assert dataset("multi30k") == ""
    assert dataset("sentences", dataset="multi30k") == "multi30k"
    assert dataset("multi30k", dataset="multi30k", source="en", target="de") == ""
