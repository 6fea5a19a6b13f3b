"""Who is on trial? Every audited text with its prediction and its heat map."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from heedmap.data.batches import scatter_rows
from heedmap.data.corpus import UNKNOWN, Split
from heedmap.data.text_names import text_name
from heedmap.experiments.columns import Columns, shared
from heedmap.experiments.context import AuditContext
from heedmap.experiments.cost import CostProbe
from heedmap.experiments.findings import ClassNumber, Finding
from heedmap.experiments.intervals import of_share
from heedmap.experiments.levels import WEAK, grade
from heedmap.experiments.methods.number_skill import number_skill
from heedmap.experiments.output_spread import DEVIATION, MEAN, TEXTS
from heedmap.experiments.pooling import TEXT
from heedmap.experiments.registry import Experiment, HeatMap, Row
from heedmap.experiments.results import Results, TextNumbers
from heedmap.experiments.text_tables import text_table
from heedmap.files.tables import ragged
from heedmap.measures import entropy, predictions
from heedmap.models.hierarchical_classifier import HierarchicalClassifier
from heedmap.models.trace import Trace

NO_LABELS = "the texts have no labels"
NO_LABEL = "no label"  # why a text is left out
ONE_CLASS = "one class only among the audited texts: nothing to compare with"
_UNIFORM = "one class only"  # how this begins, whatever the texts are called

WORDS: dict[str, Any] = {
    "key": "skill",
    "kind": "skill",
    "topic": "predicts well enough to be explained",
    "question": "Does the model predict well enough to be worth explaining?",
    "measure": "accuracy on the audited test texts",
}


COLUMNS = Columns(
    "One row per text, or per window of a long one.",
    {
        **shared("row", "label", "predicted", "n_tokens", "max_attention"),
        "key": ("text", "the text's own id in the data, or its line, row or index there"),
        "tokens": ("list per token", "the words, or sentences, that the map is of"),
        "probabilities": (
            "list per class, sums to 1",
            "the model's prediction; of a model that gives a number, that number alone",
        ),
        "amount": ("number", "the label, where that is a number and no class"),
        MEAN: (
            "number",
            "the mean output of all texts, or of the first in the order in which texts are drawn; only of a "
            "model that gives a number, as the next two",
        ),
        DEVIATION: ("number, from 0", "the standard deviation of these outputs"),
        TEXTS: ("count", "how many texts these are"),
        "entropy": ("nats, 0 to ln n_tokens", "entropy of the heat map, −Σ α ln α"),
        "attention": ("list per token, from 0", "the heat map on trial"),
        TEXT: ("number, from 0", "the whole text; only where long texts are read in windows"),
        "query": ("list per word", "the text of a pair that no map is of"),
        "second": (
            "number, from 0",
            "the first token of a pair's second text; only where the map is over both",
        ),
        "target": (
            "number, from 0",
            "the word that the model is asked about; only where it is asked of one",
        ),
        "choices": (
            "list per class",
            "the two words of which one is hidden; only of masked language models",
        ),
        "candidates": ("count", "possible answers, where not every class is one"),
        "x": (
            "list per token",
            "where the item of a bag lies, to the right; only where it is known",
        ),
        "y": ("list per token", "the same, downwards"),
        "picture": ("data URI", "the picture as the model sees it, small; only of pictures"),
        "rationale": ("list per token", "whether people, or the grammar, mark the token"),
        "word_attention": (
            "list per token of lists per word",
            "the weights of each sentence's words, which sum to 1; only where tokens are sentences",
        ),
    },
)


def instances(context: AuditContext) -> pa.Table:
    """Return each text with its prediction and its heat map. Rows are numbered as in the split."""
    split, traces = context.split, [_small(trace) for trace in context.traces]
    rows = [trace.rows for trace in traces]
    logits = scatter_rows(rows, [trace.logits for trace in traces])
    columns: dict[str, object] = {
        "key": split.keys,
        "tokens": pa.array(
            [[t.strip() for t in text] for text in split.tokens], pa.list_(pa.string())
        ),
        "n_tokens": [len(tokens) for tokens in split.tokens],
        "label": pa.array(split.labels, pa.int64(), mask=split.labels == UNKNOWN),
        "predicted": logits.argmax(-1),
        "probabilities": pa.array(list(predictions(logits).numpy(force=True))),
        "max_attention": scatter_rows(rows, [trace.heatmap.amax(-1) for trace in traces]),
        "entropy": scatter_rows(rows, [entropy(trace.heatmap) for trace in traces]),
        "attention": ragged(
            rows, [trace.heatmap for trace in traces], [trace.mask for trace in traces]
        ),
    }
    columns |= _of_some_kinds(split)
    if logits.shape[1] == 1:
        columns |= context.output_spread.columns()
    if isinstance(context.model, HierarchicalClassifier):
        columns["word_attention"] = _word_attention(context, context.model)
    for row in (~logits.isfinite().all(-1)).nonzero()[:, 0].tolist():
        name = text_name(split.keys[row])
        raise FloatingPointError(f"{name}: expected numbers as logits, got {logits[row].tolist()}")
    return text_table(context, columns)


def _of_some_kinds(split: Split) -> dict[str, object]:
    """Return the columns of texts that only some kinds of them have."""
    columns: dict[str, object] = {}
    if split.amounts is not None:
        columns["amount"] = split.amounts
    if split.text_of is not None:
        columns[TEXT] = np.unique(split.text_of, return_inverse=True)[1]
    if split.queries is not None:
        queries = [[word.strip() for word in query] for query in split.queries]
        columns["query"] = pa.array(queries, pa.list_(pa.string()))
    if split.seconds is not None:
        columns["second"] = split.seconds
    if split.targets is not None:
        columns["target"] = split.targets
    if split.choices is not None:
        columns["choices"] = pa.array([list(words) for words in split.choices])
    if split.allowed is not None:
        columns["candidates"] = split.allowed.sum(1)
    if (places := split.places) is not None:
        for axis, name in enumerate("xy"):
            columns[name] = pa.array([None if p is None else p[:, axis].tolist() for p in places])
    if (pictures := split.pictures) is not None:
        columns["picture"] = pictures
    if split.rationale is not None:
        columns["rationale"] = pa.array([mask.tolist() for mask in split.rationale])
    return columns


def _word_attention(context: AuditContext, model: HierarchicalClassifier) -> pa.Array:
    lists: dict[int, list[list[float]]] = {}
    for batch in context.batches:
        lists |= zip(batch.rows.tolist(), model.word_attention(batch), strict=True)
    return pa.array([lists[row] for row in range(len(lists))], pa.list_(pa.list_(pa.float32())))


def _small(trace: Trace) -> Trace:
    """Drop the weights and the model's state, which may be large."""
    return replace(
        trace,
        attention=trace.attention[:, :0],
        support=trace.support[:, :0],
        state=None,
        scores=None,
    )


def _skill(results: Results) -> list[Finding]:
    """Compare the accuracy with always answering the commonest class; of numbers, with the mean label."""
    if results.scale.unit is not None:
        return [number_skill(results, WORDS, _untold)]
    labels = results.column("instances", "label")
    if np.isnan(labels).any():
        return [_untold(len(labels))]
    label = labels.astype(int)
    correct = (label == results.predicted).astype(np.float64)
    majority = float(np.bincount(label).max() / len(label))
    results.numbers["skill"] = TextNumbers(correct)
    low, high = of_share(correct, results.clusters, results.tail)
    value = float(correct.mean())
    lift = [
        (x - majority) / (1 - majority) if majority < 1 else math.nan for x in (value, low, high)
    ]
    reading, level = grade("skill", lift[0], lift[1], lift[2])
    if majority == 1:
        reading = ONE_CLASS
    return [
        Finding(
            **WORDS,
            value=value,
            low=low,
            high=high,
            n=len(correct),
            distinct=len(np.unique(results.clusters)),
            left_out={},
            reading=reading,
            level=level,
            meaning=f"always answering with the commonest class would score {majority:.3f}",
            by_class=_by_class(results, correct, label),
        )
    ]


def is_doubtful(skill: Finding) -> bool:
    """Return whether the model may predict no better than its commonest class; False without labels."""
    return is_of_one_class(skill) or WEAK in skill.reading


def is_of_one_class(skill: Finding) -> bool:
    """Return whether all audited texts have the same label."""
    return skill.reading.startswith(_UNIFORM)


def is_unlabelled(skill: Finding) -> bool:
    """Return whether the labels are not known."""
    return NO_LABEL in skill.left_out


def _untold(count: int) -> Finding:
    """Say that the labels are not known, so that the predictions cannot be judged."""
    return Finding(
        **WORDS,
        value=math.nan,
        low=math.nan,
        high=math.nan,
        n=0,
        distinct=0,
        left_out={NO_LABEL: count},
        reading=NO_LABELS,
        level="cannot tell",
        meaning="all other questions are about what the answers rest on, whether they are right or wrong",
        no_interval="no labels to compare the predictions with",
    )


def _by_class(
    results: Results, correct: NDArray[np.float64], label: NDArray[np.int64]
) -> dict[str, ClassNumber]:
    """Return how often the predictions of each class are right; by chance as often as texts have that label."""
    shares = np.bincount(label, minlength=len(results.classes)) / len(label)
    return results.by_class(correct, np.mean, shares[results.predicted], 1.0)


def _heat_maps(row: Row) -> list[HeatMap]:
    instance = row["instances"]
    heat_map = HeatMap("learned attention", "attention", instance["attention"])
    of_words = instance.get("word_attention")
    if of_words is None:
        return [heat_map]
    words = [sentence.split() or [sentence] for sentence in instance["tokens"]]
    weights = [
        a * w
        for a, word_weights in zip(instance["attention"], of_words, strict=True)
        for w in word_weights
    ]
    name = "words: each one's weight in its sentence × the sentence's"
    return [
        heat_map,
        HeatMap(
            name,
            "attention",
            weights,
            [word for sentence_words in words for word in sentence_words],
        ),
    ]


def _facts(row: Row) -> list[tuple[str, float | int | None]]:
    """Return the label where it is a number: a class is shown with the prediction."""
    return [("label", row["instances"].get("amount"))]


def _cost(probe: CostProbe) -> float:
    return probe.reading(1.0)


EXPERIMENT = Experiment(
    "instances",
    instances,
    columns=COLUMNS,
    place=10,
    findings=_skill,
    heat_maps=_heat_maps,
    facts=_facts,
    figures=("heedmap.report.place_figures:place_figures",),
    cost=_cost,
    in_chunks=True,
)
