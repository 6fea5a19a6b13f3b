"""A transformer on trial: its heat map, and its predictions under other weights."""

import numpy as np
import pytest
import torch
from making import evidence_of
from oracles import rollout_rows
from tiny_transformers import CONFIGS, TEXTS, tiny_classifier, tiny_model, tiny_tokenizer
from wording import refused

from heedmap.huggingface import attention_hook, maps
from heedmap.huggingface.attention_hook import Visitor, sdpa_attention_forward
from heedmap.huggingface.inputs import kinds_of
from heedmap.importance.deletions import reread_without_each
from heedmap.importance.words import sum_by_word
from heedmap.measures import log_odds
from heedmap.models.layered import Layered, Map
from heedmap.models.trace import Model
from heedmap.settings.audit import AuditSettings

CLOSE = 1e-4  # of logits: float32, weights of size .6, sums in another order
ENCODERS = ["bert", "distilbert", "albert", "mpnet"]


@pytest.mark.parametrize("architecture", CONFIGS)
def test_it_is_a_model_like_any_other(architecture):
    model = tiny_classifier(architecture)
    assert isinstance(model, Model)
    assert isinstance(model, Layered)


@pytest.mark.parametrize(
    ("architecture", "reads"),
    [
        ("bert", "first"),
        ("distilbert", "first"),
        ("gpt2", "last"),
        ("llama", "last"),
        ("bart", "last"),
    ],
)
def test_the_row_that_the_classifier_reads_is_found(architecture, reads):
    assert tiny_classifier(architecture).reads == reads


@pytest.mark.parametrize("architecture", ENCODERS)
def test_the_heat_map_is_the_models_own_row_added_up_over_words(architecture):
    model = tiny_classifier(architecture)
    plain = tiny_model(architecture)
    plain.set_attn_implementation("eager")
    batch = model.batch(TEXTS, range(3))
    trace = model.trace(batch)
    for i, text in enumerate(TEXTS):
        one = tiny_tokenizer()("".join(text), return_tensors="pt")
        inputs = {name: one[name] for name in ("input_ids", "attention_mask")}
        found = plain(**inputs, output_attentions=True)
        row = found.attentions[-1][0].mean(0)[0]
        assert torch.allclose(found.logits[0], trace.logits[i], atol=CLOSE)
        words = torch.zeros(len(text))
        at, ends = 0, []
        for word in text:
            at += len(word)
            ends.append(at)
        offsets = tiny_tokenizer()("".join(text), return_offsets_mapping=True)["offset_mapping"]
        for position, (start, end) in enumerate(offsets):
            if end > start:
                words[next(w for w, last in enumerate(ends) if end <= last)] += row[position]
        assert torch.allclose(words / words.sum(), trace.heatmap[i, : len(text)], atol=1e-5)
        assert (trace.heatmap[i, len(text) :] == 0).all()


@pytest.mark.parametrize("architecture", CONFIGS)
@pytest.mark.parametrize("settings", [{}, {"view": "received"}, {"layer": 0}, {"head": 2}])
def test_its_own_weights_give_its_own_prediction_and_others_that_of_a_whole_pass(
    architecture, settings
):
    model = tiny_classifier(architecture, **settings)
    batch = model.batch(TEXTS, range(3))
    trace = model.trace(batch)
    again = model.predict(trace, trace.attention.unsqueeze(0)).squeeze(0)
    assert torch.allclose(again, trace.logits, atol=CLOSE)

    noise = torch.rand(2, *trace.attention.shape, generator=torch.Generator().manual_seed(1))
    other = noise.masked_fill(~trace.support, 0)
    other = other / other.sum(-1, keepdim=True).clamp(min=1e-9)

    class Slow(Visitor):
        def weights(self, call, weights):
            if call.index != model.calls[model.layer]:
                return None
            new = weights.clone()
            heads = range(model.heads) if model.head is None else [model.head]
            imposed = other[self.which].view(3, len(heads), -1, weights.shape[-1])
            for b in range(3):
                rows = range(weights.shape[2])
                if model.one_row:
                    rows = [int(model.read_rows(model.inputs(batch))[b])]
                for k, head in enumerate(heads):
                    for r, row in enumerate(rows):
                        if model.one_row or bool(batch.real[b, row]):
                            new[b, head, row] = imposed[b, k, r]
            return new

    found = model.predict(trace, other)
    for which in range(2):
        visitor = Slow()
        visitor.which = which
        with model.adapter.visiting(visitor):
            expected = model.model(**model.inputs(batch)).logits
        assert torch.allclose(found[which], expected, atol=CLOSE)
        assert not torch.allclose(expected, trace.logits, atol=1e-3)


@pytest.mark.parametrize(
    ("architecture", "way"),
    [("bert", "narrow"), ("distilbert", "narrow"), ("albert", "narrow"), ("gpt2", "narrow"),
     ("llama", "narrow"), ("bloom", "upward")],
)  # fmt: skip
def test_only_what_lies_above_the_weights_is_computed(architecture, way):
    assert tiny_classifier(architecture).rerun.way == way


@pytest.mark.parametrize("architecture", ["bert", "albert", "gpt2", "llama"])
def test_a_layer_below_the_last_is_entered_from_below(architecture):
    assert tiny_classifier(architecture, layer=1).rerun.way == "upward"


@pytest.mark.parametrize("architecture", CONFIGS)
def test_a_batch_of_one_is_a_batch_of_many(architecture):
    model = tiny_classifier(architecture)
    many = model.trace(model.batch(TEXTS, range(3)))
    for i, text in enumerate(TEXTS):
        one = model.trace(model.batch([text], [i]))
        assert torch.allclose(one.logits[0], many.logits[i], atol=CLOSE)
        assert torch.allclose(one.heatmap[0], many.heatmap[i, : len(text)], atol=1e-5)


@pytest.mark.parametrize("architecture", ["bert", "gpt2", "bart", "bloom", "xlnet"])
def test_logits_from_looked_up_embeddings_are_the_models(architecture):
    model = tiny_classifier(architecture)
    batch = model.batch(TEXTS, range(3))
    trace = model.trace(batch)
    embedded = model.embed(batch).detach().requires_grad_()
    logits = model.logits_from(embedded, batch)
    assert torch.allclose(logits, trace.logits, atol=CLOSE)
    (gradient,) = torch.autograd.grad(logits.sum(), embedded)
    assert gradient[batch.real].abs().sum() > 0
    closed = model.logits_from(embedded, batch, trace.attention)
    assert torch.allclose(closed, trace.logits, atol=CLOSE)


@pytest.mark.parametrize("architecture", ["bert", "distilbert", "mpnet", "xlnet"])
def test_gradients_from_the_embeddings_are_those_of_embeddings_given_in_place_of_ids(architecture):
    model = tiny_classifier(architecture)
    batch = model.batch(TEXTS, range(3))
    given = model.inputs(batch)
    gradients = []
    for read in (
        lambda embedded: model.logits_from(embedded, batch),
        lambda embedded: (
            model.model(
                inputs_embeds=embedded, **{n: t for n, t in given.items() if n != "input_ids"}
            ).logits
        ),
    ):
        embedded = model.embed(batch).detach().requires_grad_()
        gradients += torch.autograd.grad(read(embedded)[:, 0].sum(), embedded)
    assert torch.allclose(*gradients, atol=1e-5)
    assert (gradients[0].abs().amax(-1)[batch.real] > 0).all()


@pytest.mark.parametrize("architecture", CONFIGS)
def test_predictions_alone_are_those_of_the_whole_model(architecture):
    model = tiny_classifier(architecture)
    batch = model.batch(TEXTS, range(3))
    with torch.no_grad():
        expected = model.model(**model.inputs(batch)).logits
    assert torch.allclose(model.logits(batch), expected, atol=CLOSE)
    assert torch.allclose(model.trace(batch).logits, expected, atol=CLOSE)


@pytest.mark.parametrize("architecture", ["bert", "distilbert", "albert", "gpt2", "llama"])
def test_predictions_alone_are_fused_where_that_changes_no_answer(architecture, monkeypatch):
    model = tiny_classifier(architecture)
    assert model.fuses
    batch = model.batch(TEXTS, range(3))
    fused = model.logits(batch)

    def wrong(*args, **options):
        output, weights = sdpa_attention_forward(*args, **options)
        return 1.2 * output, weights

    monkeypatch.setattr(attention_hook, "sdpa_attention_forward", wrong)
    assert not torch.allclose(model.logits(batch), fused, atol=10 * CLOSE)  # it does serve
    another = tiny_classifier(architecture)
    assert not another.fuses
    assert torch.allclose(another.logits(batch), fused, atol=CLOSE)


@pytest.mark.parametrize("architecture", ["bert", "distilbert", "albert", "gpt2", "llama"])
def test_rows_that_nobody_reads_are_not_computed_for_them(architecture):
    assert tiny_classifier(architecture, layer=0).quick is not None


def test_without_a_word_means_the_text_without_its_characters():
    model = tiny_classifier()
    plain = tiny_model()
    (without,) = reread_without_each(model, [TEXTS[1]])
    for j in range(len(TEXTS[1])):
        text = "".join(TEXTS[1][:j] + TEXTS[1][j + 1 :])
        inputs = tiny_tokenizer()(text, return_tensors="pt")
        expected = plain(inputs["input_ids"], inputs["attention_mask"]).logits[0]
        assert torch.allclose(without[j], expected, atol=CLOSE)


def test_a_masked_word_keeps_its_place_and_the_space_before_it():
    model = tiny_classifier()
    assert list(model.mask_token(TEXTS[0], 1)) == ["A", " [MASK]", " film", "."]
    batch = model.batch([model.mask_token(TEXTS[0], 1)], [0])
    assert 4 in batch.ids[0].tolist()


def test_all_heat_maps_come_from_one_pass_and_are_the_obvious_ones():
    model = tiny_classifier("bert")
    plain = tiny_model("bert")
    plain.set_attn_implementation("eager")
    batch = model.batch(TEXTS, range(3))
    maps = model.maps()
    found = model.heat_maps(batch, maps)
    inputs = {"input_ids": batch.ids, "attention_mask": batch.real.long()}
    with torch.enable_grad():
        hidden = plain.get_input_embeddings()(batch.ids).detach().requires_grad_()
        outputs = plain(
            inputs_embeds=hidden, attention_mask=inputs["attention_mask"], output_attentions=True
        )
        y = log_odds(outputs.logits, outputs.logits.argmax(-1)).sum()
        gradients = torch.autograd.grad(y, outputs.attentions)
    attentions = [a.detach() for a in outputs.attentions]

    def words(values):
        summed = sum_by_word(values, batch.words, batch.mask.shape[1])
        return summed / summed.sum(-1, keepdim=True)

    def shown(*which):
        return found[:, maps.index(Map(*which))]

    for layer in range(3):
        for head in range(4):
            row = words(attentions[layer][:, head, 0])
            assert torch.allclose(shown("row", layer, head), row, atol=1e-5)
            gradient = (attentions[layer] * gradients[layer])[:, head, 0].abs()
            assert torch.allclose(shown("gradient", layer, head), words(gradient), atol=1e-4)
    queries = batch.real.float()
    received = torch.einsum("bhqn,bq->bn", attentions[1], queries)
    assert torch.allclose(shown("received", 1, None), words(received), atol=1e-5)
    start = torch.zeros(batch.real.shape, dtype=torch.float64)
    start[:, 0] = 1
    rolled = rollout_rows(torch.stack([a.mean(1) for a in attentions]), batch.real, start)
    assert torch.allclose(shown("rollout", 2, None).double(), words(rolled), atol=1e-5)
    # Heads of size 4 and texts of up to 11 positions: some of the weights cancel out.
    assert not torch.allclose(shown("effective", 2, None), shown("row", 2, None), atol=1e-3)


@pytest.mark.parametrize("view", ["row", "received", "rollout", "flow", "gradient", "effective"])
def test_every_view_can_be_on_trial(view):
    model = tiny_classifier("bert", view=view)
    batch = model.batch(TEXTS, range(3))
    trace = model.trace(batch)
    assert torch.allclose(trace.heatmap.sum(-1), torch.ones(3), atol=1e-5)
    at = model.heat_maps(batch, [model.map_on_trial()])[:, 0]
    assert torch.allclose(trace.heatmap, at, atol=1e-5)


def test_what_heads_do_adds_up():
    model = tiny_classifier("bert")
    batch = model.batch(TEXTS, range(3))
    facts = model.layer_facts(batch)
    total = sum(facts[f"share_{kind}"] for kind in model.kinds)
    assert torch.allclose(total, torch.ones_like(total), atol=1e-5)
    sizes = batch.real.sum(1)[:, None, None]
    assert torch.equal(facts["free"], sizes - facts["rank"])
    assert (facts["rank"] <= 4).all()  # the size of a head
    assert facts["effective_share"].max() <= 1 + 1e-9
    assert (facts["effective_share"][1] < 1).all()  # 11 positions, heads of 4


def test_positions_are_words_punctuation_or_a_special_token():
    model = tiny_classifier("bert")
    batch = model.batch([["the", " plot", ",", " films", " zzz", "."], [","]], range(2))
    cls, sep = model.kinds.index("[CLS]"), model.kinds.index("[SEP]")
    found = kinds_of(model.tokenizer, batch, model.kinds)
    # film ##s, and a word that the tokenizer does not know: a word all the same
    assert found[0].tolist() == [cls, 0, 0, 1, 0, 0, 0, 1, sep]
    assert found[1].tolist() == [cls, 1, sep, -1, -1, -1, -1, -1, -1]
    # What is no word and no token of the list counts as a word.
    listed = [name for name in model.kinds if name != "[SEP]"]
    assert kinds_of(model.tokenizer, batch, listed)[0, -1] == 0


def test_a_shared_layer_is_told_apart_by_its_turn():
    model = tiny_classifier("albert")
    assert len(set(model.layout.layers)) == 1
    assert len(model.calls) == 3
    batch = model.batch(TEXTS, range(3))
    shown = [model.heat_maps(batch, [Map("row", layer, None)]) for layer in range(3)]
    assert not torch.allclose(shown[0], shown[1], atol=1e-4)


def test_no_weight_is_put_on_the_future_or_on_padding():
    model = tiny_classifier("llama", view="received")
    batch = model.batch(TEXTS, range(3))
    trace = model.trace(batch)
    size = batch.real.shape[1]
    support = trace.support.view(3, model.heads, size, size)
    future = torch.ones(size, size).triu(1).bool()
    assert not (support & future).any()
    assert not (support & ~batch.real[:, None, None, :]).any()
    assert not (support & ~batch.real[:, None, :, None]).any()


def test_the_predictions_can_be_differentiated_by_the_weights():
    model = tiny_classifier()
    trace = model.trace(model.batch(TEXTS, range(3)))
    weights = trace.attention.unsqueeze(0).clone().requires_grad_()
    (gradient,) = torch.autograd.grad(model.predict(trace, weights).diff().sum(), weights)
    assert (gradient.abs().sum((2, 3)) > 0).all()


@pytest.mark.parametrize(("settings", "said"), [({"layer": 3}, "layer"), ({"head": 7}, "head")])
def test_a_layer_or_head_that_is_not_there_is_refused(settings, said):
    with refused(said, "from 0"):
        tiny_classifier("bert", **settings)


# --- in an audit ------------------------------------------------------------------------------------------

FEW = AuditSettings(permutations=20, search_restarts=2, search_steps=6, descent_steps=0)


def texts_of_all_lengths():
    words = [word for text in TEXTS for word in text]
    return [[words[(3 * i + k) % len(words)] for k in range(1 + i % 9)] for i in range(14)]


def read_in_batches(table, **settings):
    """One table, of texts that are read together, a few at a time and one by one."""
    return [
        evidence_of(tiny_classifier(batch_tokens=tokens, **settings), texts_of_all_lengths(), FEW)
        .table(table)
        .to_pandas()
        for tokens in (2048, 64, 9)
    ]


@pytest.mark.parametrize("settings", [{}, {"head": 1}, {"view": "received"}])
def test_how_texts_are_batched_changes_the_last_digits_of_permutations_alone(settings):
    first, *others = read_in_batches("permutation", **settings)
    for other in others:
        for name in ("median_tvd", "flipped", "uniform_tvd", "uniform_flipped"):
            np.testing.assert_allclose(other[name], first[name], rtol=0, atol=2e-5)
    assert first["median_tvd"].max() > 0.02


@pytest.mark.slow
@pytest.mark.parametrize("settings", [{}, {"view": "received"}])
def test_how_texts_are_batched_hardly_changes_what_the_search_finds(settings):
    first, *others = read_in_batches("adversary", **settings)
    for other in others:
        apart = (other["jsd"] - first["jsd"]).abs()
        # From another rounding a search may now and then take another path.
        assert (apart < 2e-5).mean() >= 0.9
        assert apart.max() < 0.1
    assert first["jsd"].median() > 0.1


def test_each_table_says_with_how_many_threads_and_in_what_batches_it_was_made():
    model = tiny_classifier(batch_tokens=64)
    made = evidence_of(model, TEXTS, FEW).table("permutation").schema.metadata
    assert made == {b"threads": str(torch.get_num_threads()).encode(), b"batch_tokens": b"64"}


def test_the_scan_tells_a_flow_that_was_not_computed_from_a_map_without_a_rank(monkeypatch):
    monkeypatch.setattr(maps, "LONGEST", 8)  # with [CLS] and [SEP]: the second text has more
    scan = evidence_of(tiny_classifier(), TEXTS, FEW).table("scan").to_pandas()
    flows = scan[scan["view"] == "flow"]
    assert flows["computed"].tolist() == [row != 1 for row in flows["row"]]
    assert scan[scan["view"] != "flow"]["computed"].all()
    assert scan[scan["row"] == 2]["tau_leave_one_out"].isna().all()  # a single word
    assert flows[flows["row"] == 0]["tau_leave_one_out"].notna().any()


@pytest.mark.parametrize("precision", [torch.float32, torch.bfloat16])
def test_its_precision_is_that_of_its_weights(precision):
    model = tiny_classifier()
    model.model.to(precision)
    assert model.precision == precision
    batch = model.batch(TEXTS[:1], [0])
    assert model.logits(batch).dtype == torch.float32
