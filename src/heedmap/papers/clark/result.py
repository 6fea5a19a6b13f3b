"""What heads attend to, which follow syntax, and what probes read: tables beside the published numbers."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

import numpy as np
import pandas as pd

from heedmap.importance.head_relations import FARTHEST
from heedmap.papers.clark.claims import Scores, claims, difference
from heedmap.papers.clark.figures import figures
from heedmap.papers.clark.profiles import BROAD, LABELS
from heedmap.papers.clark.published import RELATIONS
from heedmap.papers.clark.relations import FEWEST
from heedmap.papers.clark.settings import ClarkSettings
from heedmap.papers.kit.parts import Row
from heedmap.papers.kit.reproduction import CellReproduction
from heedmap.papers.kit.result import Result, Table

COLUMNS = {
    "part": "heads, relations or probes",
    "model": "trained; random: its layers are untrained; both: the probe's name says which",
    "layer": "layer, from 0; empty for uniform attention",
    "head": "head, from 0",
    "cls": "mean attention to [CLS]",
    "sep": "mean attention to [SEP]",
    "punctuation": "mean attention to full stops and commas",
    "self": "mean attention to the row's own position",
    "next": "mean attention to the next position",
    "previous": "mean attention to the previous position",
    "sep_to_sep": "mean attention of [SEP] to [SEP]",
    "others_to_sep": "mean attention of the other positions to [SEP]",
    "entropy": "mean entropy of the rows, nats; of uniform attention ln n",
    "entropy_cls": "mean entropy of the row of [CLS], nats",
    "label": "what the head attends to, by the paper's limits",
    "cluster": "group of heads that are alike, by average linkage",
    "x": "place in the plane by multidimensional scaling, nats per row",
    "y": "place in the plane by multidimensional scaling, nats per row",
    "relation": "relation of the words to their heads; all: every word",
    "direction": "which word attends to the other",
    "offset": "best fixed offset of the head, words",
    "offset_accuracy": "share of the words whose head is there",
    "gain": "accuracy minus offset_accuracy",
    "gain_low": "its interval over sentences, at 95 % for all relations together",
    "gain_high": "its interval over sentences, at 95 % for all relations together",
    "control_accuracy": "the best head's accuracy on the control task, mean over draws",
    "control_gain": "its gain over the best offset there, mean over draws",
    "control_gain_largest": "the largest of the draws",
    "probe": "probe or baseline",
    "task": "trees or control",
    "seed": "of the order of sentences, the network and the untrained layers",
    "accuracy": "share of the test words that get the right head",
    "n": "test words; of heads, texts",
}
MASSES = {
    "cls": "[CLS]", "sep": "[SEP]", "punctuation": ". and ,", "self": "self", "next": "next",
    "previous": "previous", "others_to_sep": "others to [SEP]", "sep_to_sep": "[SEP] to [SEP]",
}  # fmt: skip
PROBES_NOTE = """Unlabelled attachment in per cent, mean over the seeds, without punctuation and roots. In the \
control task each word type has a rule of its own (first word, last word, word before); selectivity is the \
difference. Brackets: 95 % intervals over the test sentences."""
RELATIONS_NOTE = """Per cent of the test words; head, direction and offset are chosen on other sentences. → \
the dependent attends to its head, ← the head to its dependent. Gain: head minus offset [95 % for all \
relations together]. Gain on control: that of the best head there, mean and largest of its draws. \
Published: BERT-base on the Penn Treebank, head / offset."""
ARROWS = {"dependent to head": "→", "head to dependent": "←"}


@dataclass(frozen=True)
class Clark(CellReproduction[ClarkSettings]):
    """The rows of all parts so far."""

    @property
    def missing(self) -> int:
        """How many trainings of the probes are still to be run."""
        return self.settings.seeds - len({row["seed"] for row in self.rows} - {None})

    @property
    def differences(self) -> list[str]:
        """How it differs from the paper."""
        glove = (
            []
            if self.settings.vectors
            else ["probes read embeddings of the model instead of GloVe"]
        )
        return [
            f"{self.name} instead of BERT-base and the Penn Treebank",
            f"{self.settings.segments} segments instead of 1000",
            f"probes learn from at most {self.settings.train_sentences} sentences instead of 36,160, "
            "in an order drawn by the seed",
            *glove,
            "heads and offsets are chosen on other sentences than they are judged on",
            f"fixed offsets reach {FARTHEST} words in both directions instead of 3 before and 2 behind",
            "the word without a head is in no accuracy, and punctuation not in that of all relations",
            "the root is no candidate of the probes, which do not learn from the word without a head",
            "the head of a possessor is read from its own attention, also before 's",
            "texts have one [SEP] instead of two",
        ]

    @cached_property
    def heads(self) -> list[Row]:
        """A row per head of the trained model."""
        return [row for row in self.rows if row["part"] == "heads" and row["layer"] is not None]

    @cached_property
    def uniform(self) -> Row | None:
        """The row of uniform attention."""
        rows = [row for row in self.rows if row["part"] == "heads" and row["layer"] is None]
        return rows[0] if rows else None

    def relations(self, model: str) -> dict[str, Row]:
        """Return the rows of the relations that were judged, by their names."""
        return {
            row["relation"]: row
            for row in self.rows
            if row["relation"] and row["model"] == model and row["accuracy"] is not None
        }

    @cached_property
    def scores(self) -> Scores:
        """The rows of probes and baselines, by name and task."""
        scores: dict[tuple[str, str], list[Row]] = {}
        for row in self.rows:
            if row["probe"] is not None:
                scores.setdefault((row["probe"], row["task"]), []).append(row)
        return scores


def result(clark: Clark) -> Result:
    """Make the result that all files show."""
    tables = [
        *_probes(clark.scores),
        *_relations(clark.relations("trained"), clark.relations("random")),
        *_layers(clark.heads, clark.uniform),
        *_labels(clark.heads),
    ]
    lists = ("distances", "correct", "scored")
    return clark.make_result(
        f"Clark et al.: what do the heads of {clark.name} attend to?",
        [*tables, *claims(clark.rows, clark.scores)],
        notes=_notes(clark.rows),
        figures=figures(clark.heads, clark.uniform, clark.relations("trained")),
        rows=pd.DataFrame(clark.rows).drop(columns=[*lists]),
        columns=COLUMNS,
    )


def _notes(rows: Sequence[Row]) -> list[str]:
    rare = {
        row["relation"]: row["n"]
        for row in rows
        if row["relation"] and row["model"] == "trained" and row["accuracy"] is None
    }
    if not rare:
        return []
    listed = ", ".join(f"{name} {count}" for name, count in rare.items())
    return [
        f"Relations of fewer than {FEWEST} words to learn from or to judge on are left out: {listed}."
    ]


def _probes(scores: Scores) -> list[Table]:
    parsers = list(dict.fromkeys(name for name, _ in scores))

    def share(name: str, task: str) -> str:
        rows = scores[name, task]
        return f"{100 * np.mean([row['accuracy'] for row in rows]):.1f}"

    def selectivity(name: str) -> str:
        return _points(*difference(scores[name, "trees"], scores[name, "control"], 0.95))

    def against(name: str) -> str:
        if name == "best offset":
            return ""
        return _points(*difference(scores[name, "trees"], scores["best offset", "trees"], 0.95))

    has_offset = ("best offset", "trees") in scores
    table = Table.of(
        "Who finds the heads of words?",
        parsers,
        {
            "parser": str,
            "trees %": lambda name: share(name, "trees"),
            "control %": lambda name: share(name, "control"),
            "selectivity": selectivity,
            **({"beyond the best offset": against} if has_offset else {}),
            "seeds": lambda name: str(len(scores[name, "trees"])),
        },
        PROBES_NOTE,
    )
    return [table] if parsers else []


def _points(mean: float, interval: tuple[float, float]) -> str:
    low, high = (100 * end for end in interval)
    return f"{100 * mean:+.1f} [{low:.1f}, {high:.1f}]".replace("-", "−")


def _relations(trained: Mapping[str, Row], random: Mapping[str, Row]) -> list[Table]:
    def control(name: str) -> str:
        row = trained[name]
        return (
            f"{100 * row['control_gain']:+.1f}, {100 * row['control_gain_largest']:+.1f}".replace(
                "-", "−"
            )
        )

    def published(name: str) -> str:
        return "{:.1f} / {:.1f}".format(*RELATIONS[name]) if name in RELATIONS else "–"

    table = Table.of(
        "Which relations does a single head follow?",
        trained,
        {
            "relation": str,
            "head": lambda name: (
                f"{trained[name]['layer']}-{trained[name]['head']} {ARROWS[trained[name]['direction']]}"
            ),
            "words": lambda name: str(trained[name]["n"]),
            "head %": lambda name: f"{100 * trained[name]['accuracy']:.1f}",
            "offset": lambda name: f"{trained[name]['offset']:+d}".replace("-", "−"),
            "offset %": lambda name: f"{100 * trained[name]['offset_accuracy']:.1f}",
            "gain": lambda name: _points(
                trained[name]["gain"], (trained[name]["gain_low"], trained[name]["gain_high"])
            ),
            "gain on control": control,
            "untrained layers %": lambda name: (
                f"{100 * random[name]['accuracy']:.1f}" if name in random else "–"
            ),
            "published": published,
        },
        RELATIONS_NOTE,
        labels=2,
    )
    return [table] if trained else []


def _layers(heads: Sequence[Row], uniform: Row | None) -> list[Table]:
    if uniform is None:
        return []
    by_layer = {
        f"layer {layer}": [row for row in heads if row["layer"] == layer]
        for layer in dict.fromkeys(row["layer"] for row in heads)
    }
    groups = {**by_layer, "uniform attention": [uniform]}

    def mean(group: str, name: str, factor: float, digits: int) -> str:
        value = float(np.mean([row[name] for row in groups[group]]))
        return f"{factor * value:.{digits}f}" if np.isfinite(value) else "–"

    columns: dict[str, Callable[[str], str]] = {
        **{
            f"{head} %": partial(mean, name=name, factor=100, digits=1)
            for name, head in MASSES.items()
        },
        "entropy": partial(mean, name="entropy", factor=1, digits=2),
        "entropy of [CLS]": partial(mean, name="entropy_cls", factor=1, digits=2),
    }
    note = (
        f"Mean over heads, rows and {uniform['n']} texts, as the paper's figures 2 and 4; entropies in nats. "
        "The last line is uniform attention on the same texts: the share of such positions, and ln n."
    )
    return (
        [Table.of("What does attention go to?", groups, {"heads of": str, **columns}, note)]
        if heads
        else []
    )


def _labels(heads: Sequence[Row]) -> list[Table]:
    by_label: dict[str, list[Row]] = {}
    for row in heads:
        by_label.setdefault(row["label"], []).append(row)

    def listed(label: str) -> str:
        rows = by_label[label]
        names = [f"{row['layer']}-{row['head']}" for row in rows[:12]]
        return ", ".join(names) + (f" and {len(rows) - 12} more" if len(rows) > 12 else "")

    def clusters(label: str) -> str:
        return ", ".join(
            str(number) for number in sorted({row["cluster"] for row in by_label[label]})
        )

    limits = ", ".join(f"{name} above {limit:g}" for name, limit in LABELS.items())
    table = Table.of(
        "Heads by what they attend to",
        sorted(by_label, key=lambda label: -len(by_label[label])),
        {
            "label": str,
            "which": listed,
            "clusters": clusters,
            "heads": lambda s: str(len(by_label[s])),
        },
        f"By the paper's limits: {limits}; broad: an entropy above {BROAD:.2f} of uniform attention's, which "
        "is their 3.8 nats at 128 positions.",
        labels=3,
    )
    return [table] if heads else []
