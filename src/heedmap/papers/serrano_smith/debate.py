"""Serrano & Smith's hierarchical and flat models as a part of the debate."""

import time
from importlib.util import find_spec
from pathlib import Path

from heedmap.experiments.context import AuditContext
from heedmap.experiments.registry import estimate, registered
from heedmap.papers.kit.debate_part import DebateInput, Options, Part, reader
from heedmap.papers.kit.timing import Timer
from heedmap.papers.serrano_smith.paper import PAPER, TABLES, readable, reproduce, short_texts
from heedmap.papers.serrano_smith.settings import SerranoSmithSettings
from heedmap.papers.serrano_smith.training import Training, new_model, texts_for, word_vectors
from heedmap.retraining.estimate import training_seconds
from heedmap.settings.audit import AuditSettings
from heedmap.training.sweep import one_thread


def _refusal(subject: DebateInput) -> str:
    if subject.corpus.pairs:
        return subject.refuse_pairs()
    if subject.sentences is None:
        return f"it reads texts of sentences, which cannot be read here: {subject.missing['sentences']}"
    return "" if find_spec("gensim") else "it needs gensim: pip install 'heedmap[papers]'"


def _run(subject: DebateInput, out: Path, options: Options, how: Options) -> None:
    assert subject.sentences is not None
    reproduce(subject.sentences, out=out, **options, **how)


def _seconds(subject: DebateInput, options: Options, timer: Timer) -> float:
    corpus = subject.sentences
    assert corpus is not None
    settings = SerranoSmithSettings.of(
        fingerprint=corpus.fingerprint(), data=corpus.settings, **options
    )
    (train, dev, test), _ = short_texts(corpus, settings)
    start = time.perf_counter()
    words, vectors = word_vectors((train, dev), settings.model_copy(update={"vector_epochs": 1}))
    vector_seconds = (time.perf_counter() - start) * settings.vector_epochs
    cells = []
    for name in settings.models:
        model = new_model(name, words, vectors, corpus.classes, settings, 0)
        splits = [model.encoded(texts_for(name, split), split.labels) for split in (train, dev)]
        objective = Training(name, model, splits[0], splits[1], settings, 0)
        context = AuditContext(model, readable(name, test), AuditSettings(), registered())
        with one_thread():
            costs = estimate(context)
        asking = sum(costs.get(table, 0.0) for table in TABLES)
        cells.append(training_seconds(objective) + asking)
    return vector_seconds + timer.side_by_side(cells * settings.seeds)


PARTS = [
    Part(
        "serrano-smith",
        "Serrano & Smith (2019): Is Attention Interpretable?",
        "Does erasing what is most attended change the decision, in hierarchical and flat models?",
        2019,
        {
            "seeds": 1,
            "epochs": 6,
            "least_count": 2,
            "vector_epochs": 5,
            "embedding_size": 64,
            "hidden_size": 64,
            "learning_rate": 2e-3,
        },
        _refusal,
        _run,
        _seconds,
        reader(PAPER),
    )
]
