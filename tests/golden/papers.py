"""Every paper's every reproduction, and a debate, of toy models, and what the record holds of a result."""

import json
import re
from collections.abc import Callable, Collection, Mapping
from contextlib import chdir
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

import numpy as np
from golden.record import Record
from golden.trainings import asked_texts, telling_texts, untrained_classifier
from made_translations import write_tables
from tiny_debates import TINY as OF_DEBATE
from tiny_debates import frame

import heedmap as hm
from heedmap.data.parallel import Pairs, Parallel, load_links, load_parallel
from heedmap.debates import debate as debates
from heedmap.debates import result as debate_results
from heedmap.debates.parts import debate_parts
from heedmap.papers.brunner.paper import reproduce as reproduce_brunner
from heedmap.papers.clark.paper import reproduce as reproduce_clark
from heedmap.papers.drozdyuk.paper import reproduce as reproduce_drozdyuk
from heedmap.papers.jain_wallace.paper import reproduce as reproduce_jain_wallace
from heedmap.papers.kit.registry import paper
from heedmap.papers.kit.result import MARK, Claim, Result, Table
from heedmap.papers.lu.paper import reproduce as reproduce_lu
from heedmap.papers.pruthi import sequences
from heedmap.papers.pruthi.paper import reproduce as reproduce_pruthi
from heedmap.papers.serrano_smith.paper import reproduce as reproduce_serrano_smith
from heedmap.papers.snell import classification, copying, multihead, translation
from heedmap.papers.survey.paper import reproduce as reproduce_survey
from heedmap.papers.vashishth.paper import reproduce as reproduce_vashishth
from heedmap.papers.wiegreffe_pinter.paper import reproduce as reproduce_wiegreffe_pinter

NUMBER = re.compile(r"(?<![\w.])[+−-]?\d[\d,]*(?:\.\d+)?(?:e[+−-]?\d+)?")
ENDS = {"source": "de", "target": "en"}


def words(folder: Path) -> hm.Corpus:
    """Return texts in the place of a data set that numbers are published of."""
    place = folder / "texts"
    place.mkdir()
    for seed, (name, count) in enumerate((("train", 90), ("dev", 30), ("test", 30))):
        texts, labels = telling_texts(count, seed)
        rows = zip(texts, labels, strict=True)
        lines = [json.dumps({"text": text, "label": int(label[1:])}) for text, label in rows]
        (place / f"{name}.jsonl").write_text("\n".join(lines) + "\n")
    return hm.load(place, dataset="sst", progress=False)


def pairs() -> hm.Corpus:
    """Return texts with a query."""
    texts, labels, queries = asked_texts(90)
    return hm.load(texts, labels=labels, queries=queries, progress=False)


def translated(folder: Path) -> tuple[Parallel, Pairs]:
    """Return sentences in two languages, and others whose words people linked."""
    place = folder / "sentences"
    place.mkdir()
    write_tables(place, 40)
    corpus = load_parallel(place, "de", "en", align="links:en-de")
    return corpus, load_links(place, "de", "en", "sure:de-en")


def classifier(folder: Path) -> str:
    """Return the folder of a transformer that nobody trained."""
    return str(untrained_classifier(folder / "model"))


def brunner(folder: Path) -> Any:
    """Recover tokens, and attribute hidden states."""
    sizes = {
        "train_texts": 12,
        "test_texts": 6,
        "attributed_texts": 2,
        "max_length": 24,
        "directions": 2,
        "epochs": 1,
    }
    corpus = hm.load("reviews", progress=False)
    return reproduce_brunner(
        corpus, model=classifier(folder), out=folder / "out", workers=1, **sizes
    )


def clark(folder: Path) -> Any:
    """Judge heads and probes as parsers."""
    sizes = {"train_sentences": 40, "test_sentences": 30, "segments": 3, "controls": 2, "seeds": 2}
    return reproduce_clark(model=classifier(folder), out=folder / "out", workers=1, **sizes)


def drozdyuk(folder: Path) -> Any:
    """Train small transformers and change their attention."""
    sizes = {
        "size": 8, "heads": 2, "layers": 2, "feed_forward": 8, "epochs": 6, "adversary_epochs": 2,
        "learning_rate": 2e-2, "adversary_hidden": 8, "batch_size": 16, "seeds": 2,
        "activations": ("softmax", "entmax15"), "dataset": "imdb",
    }  # fmt: skip
    return reproduce_drozdyuk(words(folder), out=folder / "out", per_layer=True, workers=1, **sizes)


def jain_wallace(folder: Path) -> Any:
    """Train and audit a part of the grid, and its variants."""
    words(folder)
    sizes = {
        "encoders": ("average", "lstm"), "scores": ("additive", "dot"), "seeds": 2, "epochs": 1,
        "instances": 15,
    }  # fmt: skip
    data = {"data": folder / "texts", "out": folder / "out"}
    return reproduce_jain_wallace(["sst"], **data, **sizes, baselines=True, workers=1)


def lu(folder: Path) -> Any:
    """Train translators with each fusion."""
    corpus, gold = translated(folder)
    sizes = {
        "vocabulary": 60, "size": 8, "heads": 2, "layers": 2, "feed_forward": 8, "dropout": 0.1,
        "batch_tokens": 64, "updates": 4, "warm_up": 2, "train_pairs": 40, "bleu_pairs": 4, "beams": 2,
        "aligned_pairs": 10, "seeds": 2, "learning_rate": 1e-2,
    }  # fmt: skip
    return reproduce_lu(corpus, gold=gold, out=folder / "out", workers=1, **ENDS, **sizes)


def pruthi(folder: Path) -> Any:
    """Make models hide words."""
    sizes = {"seeds": 2, "epochs": 5, "penalties": (2.0,), "forbidden": "awful,lovely"}
    return reproduce_pruthi(words(folder), out=folder / "out", workers=1, **sizes)


def pruthi_bert(folder: Path) -> Any:
    """Make a transformer hide words, beside sentences that say nothing."""
    corpus = hm.load("reviews", train_texts=30, test_texts=24, progress=False)
    sizes = {
        "seeds": 2,
        "bert_epochs": 1,
        "penalties": (2.0,),
        "forbidden": "and,the,was",
        "task": "sst-filler",
    }
    return reproduce_pruthi(
        corpus, out=folder / "out", models=("bert",), base=classifier(folder), workers=1, **sizes
    )


OF_SEQUENCES = {
    "symbols": 3, "longest": 3, "pairs": 60, "held_out": 20, "size": 12, "embedding": 8, "dropout": 0.1,
    "batch_size": 8, "epochs": 8, "learning_rate": 2e-2, "seeds": 2, "workers": 1,
}  # fmt: skip


def pruthi_copying(folder: Path) -> Any:
    """Make a model of sequences hide what it copies."""
    return sequences.reproduce(task="copy", out=folder / "out", penalties=(1.0,), **OF_SEQUENCES)


def pruthi_translation(folder: Path) -> Any:
    """Make a translator hide what it translates."""
    corpus, _ = translated(folder)
    return sequences.reproduce(
        corpus, task="translation", out=folder / "out", penalties=(1.0,), **ENDS, **OF_SEQUENCES
    )


def serrano_smith(folder: Path) -> Any:
    """Erase the weights of models of sentences."""
    texts, labels = telling_texts(160)
    corpus = hm.load(texts, labels=labels, tokenizer="sentences", progress=False)
    sizes = {
        "epochs": 5, "vector_epochs": 1, "embedding_size": 8, "hidden_size": 8, "least_count": 2, "seeds": 2,
        "learning_rate": 2e-2, "batch_size": 16,
    }  # fmt: skip
    return reproduce_serrano_smith(corpus, name="imdb", out=folder / "out", workers=1, **sizes)


def snell_classification(folder: Path) -> Any:
    """Compare classifiers under learned and under uniform weights."""
    sizes = {
        "hidden_size": 6,
        "embedding_size": 8,
        "steps": 30,
        "seeds": 2,
        "proxy_epochs": 2,
        "learning_rate": 0.02,
    }
    return classification.reproduce(words(folder), out=folder / "out", workers=1, **sizes)


def snell_copying(folder: Path) -> Any:
    """Learn to copy."""
    sizes = {
        "length": 3,
        "symbols": 4,
        "size": 8,
        "batch_size": 8,
        "steps": 200,
        "seeds": 2,
        "variant_seeds": 0,
        "learning_rate": 0.02,
    }
    return copying.reproduce(out=folder / "out", workers=1, **sizes)


def snell_multihead(folder: Path) -> Any:
    """Learn with one head and with several."""
    sizes = {
        "length": 3,
        "size": 6,
        "batch_size": 4,
        "heads": 2,
        "orders": 1,
        "wanted": 2,
        "most": 4,
        "combinations": 2,
    }
    return multihead.reproduce(out=folder / "out", workers=1, **sizes)


def snell_translation(folder: Path) -> Any:
    """Compare translators under learned and under uniform weights."""
    corpus, gold = translated(folder)
    sizes = {
        "vocabulary": 60, "size": 8, "layers": 1, "batch_size": 16, "epochs": 1, "seeds": 2, "bleu_pairs": 3,
        "proxy_epochs": 1,
    }  # fmt: skip
    return translation.reproduce(corpus, gold=gold, out=folder / "out", workers=1, **ENDS, **sizes)


def survey(folder: Path) -> Any:
    """Answer the survey's open questions."""
    corpora = [hm.load("reviews", train_texts=60, test_texts=20, progress=False)]
    corpora += [hm.load("babi_qa1", train_texts=60, test_texts=20, progress=False)]
    sizes = {
        "encoders": ("average",), "normalisers": ("softmax", "sparsemax"), "sizes": (8,), "seeds": 2,
        "epochs": 1, "adversary_texts": 6, "train_pairs": 30, "pair_epochs": 1,
    }  # fmt: skip
    return reproduce_survey(corpora, out=folder / "out", workers=1, **sizes)


def vashishth(folder: Path) -> Any:
    """Change the attention of models of each kind of task."""
    data = {"single": words(folder), "pair": pairs(), "generation": translated(folder)[0]}
    sizes = {
        "seeds": 2, "epochs": 6, "hidden_size": 8, "embedding_size": 8, "translator_size": 8, "vocabulary": 60,
        "draws": 2,
    }  # fmt: skip
    return reproduce_vashishth(**data, out=folder / "out", workers=1, **sizes)


def wiegreffe_pinter(folder: Path) -> Any:
    """Train variants and adversaries of a model."""
    sizes = {"seeds": 2, "epochs": 2, "adversary_epochs": 2, "lambdas": (0.5,)}
    return reproduce_wiegreffe_pinter(words(folder), out=folder / "out", workers=1, **sizes)


def debate(folder: Path) -> Result:
    """Ask every paper's questions of the same texts."""
    parts = {
        name: replace(part, quick=OF_DEBATE[name])
        for name, part in debate_parts().items()
        if name in OF_DEBATE
    }
    with (
        chdir(folder),
        patch.object(debates, "debate_parts", lambda: parts),
        patch.object(debate_results, "debate_parts", lambda: parts),
        patch("heedmap.debates.parts.QUESTIONS", ("transfer",)),
    ):
        asked = hm.debate(frame(), out="out", workers=1, progress=False)
        return debate_results.page_of(asked)


def of(name: str, reproduce: Callable[[Path], Any]) -> Callable[[Path], Result]:
    """Return a function that reproduces a paper in a folder, and compares it with what is published."""

    def reproduced(folder: Path) -> Result:
        with chdir(folder):  # so that the place is no part of what is said
            return paper(name).result(reproduce(Path()))

    return reproduced


PAPERS: dict[str, Callable[[Path], Result]] = {
    "brunner": of("brunner", brunner),
    "clark": of("clark", clark),
    "drozdyuk": of("drozdyuk", drozdyuk),
    "jain-wallace": of("jain-wallace", jain_wallace),
    "lu": of("lu", lu),
    "pruthi": of("pruthi", pruthi),
    "pruthi-bert": of("pruthi", pruthi_bert),
    "pruthi-copying": of("pruthi", pruthi_copying),
    "pruthi-translation": of("pruthi", pruthi_translation),
    "serrano-smith": of("serrano-smith", serrano_smith),
    "snell-classification": of("snell", snell_classification),
    "snell-copying": of("snell", snell_copying),
    "snell-multihead": of("snell", snell_multihead),
    "snell-translation": of("snell", snell_translation),
    "survey": of("survey", survey),
    "vashishth": of("vashishth", vashishth),
    "wiegreffe-pinter": of("wiegreffe-pinter", wiegreffe_pinter),
    "debate": debate,
}


# What is recorded of a result.


def record_of_result(result: Result) -> tuple[Record, Record]:
    """Return the numbers and decisions of a result, and its sentences.

    `tables/TITLE/ROW/COLUMN` has the numbers of a cell and its mark, `claims/NUMBER/...` the verdict and
    its numbers, `rows/COLUMN` a column of the CSV file, `figures/KEY/...` what is drawn.
    """
    values, sentences = dict[str, Any](), dict[str, Any]()
    claims = 0
    shown = dict[str, Table]()
    for part in result.sections:
        if isinstance(part, Claim):
            claims += 1
            number, prose = _of_claim(part)
            values |= _under(f"claims/{claims:02}", number)
            sentences |= _under(f"claims/{claims:02}", prose)
        else:
            shown[_free(f"tables/{_key(part.title)}", shown)] = part
    for key, table in {"summary": result.summary, **shown, "latex": result.latex}.items():
        number, prose = _of_table(table)
        values |= _under(key, number)
        sentences |= _under(key, prose)
    values |= _under("rows", {name: result.rows[name].tolist() for name in result.rows.columns})
    drawn: list[str] = []
    for figure in result.figures:
        drawn.append(_free(f"figures/{figure.key}", drawn))
        values |= _under(drawn[-1], _drawn(figure.spec))
        prose = {name: getattr(figure, name) for name in ("title", "n", "caption", "notes")}
        sentences |= _under(drawn[-1], prose)
    about = ("title", "remarks", "lead", "columns", "reports")
    sentences |= {name: [getattr(result, name)] for name in about}
    return {key: _plain(value) for key, value in values.items()}, {
        key: _plain(value) for key, value in sentences.items()
    }


def _of_claim(claim: Claim) -> tuple[dict[str, Any], dict[str, Any]]:
    number = {
        "verdict": claim.verdict,
        "numbers": [_numbers(text) for text in claim.numbers],
        "not counted": [MARK in text for text in claim.numbers],
    }
    prose = {name: getattr(claim, name) for name in ("text", "basis", "found", "numbers")}
    if claim.decisive is not None:
        decisive = claim.decisive._asdict()
        prose["decisive/of"] = decisive.pop("of")
        number |= _under("decisive", decisive)
    return number, prose


def _of_table(table: Table) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return a table's numbers by row and column (of a table of words by the row's number), and its texts."""
    number, prose = dict[str, Any](), dict[str, Any]({"title": table.title, "note": table.note})
    only_words = table.labels >= len(table.heads)
    for place, line in enumerate(table.lines, 1):
        labels = line[: table.labels]
        row = f"{place:02}" if only_words else _free(_key(", ".join(labels)), number)
        number[row] = [_numbers(text) if only_words else MARK in text for text in labels]
        for column, (head, text) in enumerate(zip(table.heads, line, strict=True)):
            prose[f"{row}/{_key(head)}"] = text
            if column >= table.labels:
                found = [*_numbers(text), *[MARK] * (MARK in text)]
                number[f"{row}/{_key(head)}"] = found or [text]
    return number, prose


def _drawn(spec: Mapping[str, Any]) -> dict[str, Any]:
    """Return the data of a chart, a list for each field, in the order in which the chart has them."""
    return {
        f"{number}/{_key(name)}": [row.get(name) for row in rows]
        for number, rows in enumerate(spec["datasets"].values(), 1)
        for name in dict.fromkeys(name for row in rows for name in row)
    }


def _under(start: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{start}/{key}": value for key, value in values.items()}


def _key(text: str) -> str:
    """Return a text as a part of a key: without the mark of models that have not learned."""
    return " ".join(text.replace(MARK, "").replace("/", "|").split()) or "–"


def _free(key: str, taken: Collection[str]) -> str:
    """Return a key, with a number if it is taken."""
    every = (key, *(f"{key} ({number})" for number in range(2, len(taken) + 2)))
    return next(one for one in every if one not in taken)


def _numbers(text: str) -> list[float]:
    return [float(found.replace("−", "-").replace(",", "")) for found in NUMBER.findall(text)]


def _plain(value: Any) -> Any:
    """Return a value as a list of what JSON has."""
    value = value if isinstance(value, list | tuple) else [value]
    return json.loads(json.dumps(value, default=_of_numpy))


def _of_numpy(value: Any) -> Any:
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else str(value)
