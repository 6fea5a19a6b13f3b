"""Jain & Wallace's baselines and variants of attention, in one table.

    rows = baselines(hm.load("sst", dataset="sst"), seed=0)

Their released code trains and compares all of them; the paper does not print the table.
"""

from functools import partial
from typing import Any, TypeVar

import numpy as np
from jaxtyping import Float
from torch import Tensor

from heedmap.data.corpus import Corpus
from heedmap.errors import InputError
from heedmap.models.attention_classifier import AttentionClassifier, TextClassifier
from heedmap.models.classifier import Classifier
from heedmap.models.scores import Lexical
from heedmap.papers.jain_wallace.frozen import Frozen, freeze, lexical
from heedmap.papers.jain_wallace.no_attention import NoAttention
from heedmap.papers.jain_wallace.regularised import regularised
from heedmap.papers.jain_wallace.substitution import WORDS, substitution
from heedmap.runs.run import Run
from heedmap.runs.train import train
from heedmap.settings.models import ModelSettings
from heedmap.settings.run import RunSettings
from heedmap.settings.training import TrainSettings
from heedmap.terminal.output import remark
from heedmap.terminal.progress import portion
from heedmap.training.attention import AttentionObjective, cross_entropy
from heedmap.training.evaluation import predict_logits, scores_of
from heedmap.training.fit import fit
from heedmap.training.initialisation import init_model
from heedmap.training.log_odds import check_suitable, fit_log_odds

COLUMNS = (
    "variant", "accuracy", "f1", "roc_auc", "agreement", "jsd", "uniform_texts",
    "tvd", "flipped", "all_replaced",
)  # fmt: skip
M = TypeVar("M", bound=Classifier)
TRAININGS = ("attention", "no attention", "log-odds in training", "regularised")


def baselines(
    corpus: Corpus,
    *,
    encoder: str = "lstm",
    score: str = "additive",
    seed: int = 0,
    attention: Run | None = None,
    **training: Any,
) -> list[dict[str, Any]]:
    """Train and compare the variants on a corpus of single texts of two classes, on its test split.

    Returns one row per variant with all of `COLUMNS`, None where a column does not apply:

    * `accuracy`, `f1` (of class 1) and `roc_auc`;
    * `agreement`: the share of test texts that get the same class as from `attention`;
    * `jsd`: mean Jensen-Shannon divergence, in nats, of the variant's weights from the log-odds weights;
    * `uniform_texts`: test texts in which no word has a coefficient: their log-odds weights are uniform;
    * `tvd`, `flipped` and `all_replaced` of the substitutions (`substitution.py`), made on `attention`.

    Args:
        corpus: from `heedmap.load`.
        encoder, score, seed: of `attention`; the other variants share encoder and seed.
        attention: a run on this corpus with the same three, if it is trained already.
        training: any other option of `heedmap.train`, for all variants.

    Raises:
        InputError: pairs of texts, not two classes, or an `attention` with other settings.

    Where no word speaks for one of the classes, no words are replaced, with a warning.
    """
    if score == "log_odds":
        raise InputError("score: expected a learned one, additive or dot, got log_odds")
    check_suitable(corpus)
    if attention is not None:
        _check_same(attention, corpus, encoder, score, seed, training)
    part = partial(portion, 1 / (len(TRAININGS) - (attention is not None)))
    if attention is None:
        options = {"encoder": encoder, "score": score, "seed": seed, **training}
        with part(title="attention"):
            attention = train(corpus, **options)
    model, settings, test = attention.model, attention.settings, corpus.splits["test"]
    assert isinstance(model, AttentionClassifier)
    odds = fit_log_odds(corpus, model.vocabulary)
    scores = lexical(odds.coefficients)
    # The quick part first: it shows whether words distinguish the classes at all.
    substituted = []
    try:
        for count in (WORDS, 1):  # five are nearly all of a short text
            substituted += substitution(model, test, odds, count=count, seed=seed)
    except InputError as error:
        remark(f"{corpus.name}: no words replaced ({error})")
    frozen = freeze(model, test, scores)
    with part(title="no attention"):
        unattended = _train(corpus, settings, NoAttention)
    unattended_logits = predict_logits(unattended, unattended.encoded(test.texts, test.labels))
    with part(title="log-odds in training"):
        fixed = _train(corpus, _fixed(settings), TextClassifier)
    with part(title="regularised"):
        pulled = _train(corpus, settings, TextClassifier, scores)

    def row(variant: str, logits: Float[Tensor, "B C"], **columns: object) -> dict[str, Any]:
        agreement = (logits.argmax(1) == frozen.own.argmax(1)).double().mean()
        return _row(
            variant=variant, **scores_of(logits, test.labels), agreement=float(agreement), **columns
        )

    def attending(variant: str, frozen: Frozen) -> dict[str, Any]:
        return row(variant, frozen.own, jsd=float(frozen.divergence.mean()), uniform_texts=uniform)

    uniform = int(frozen.bare.sum())
    return [
        row("logistic regression", odds.logits(test.tokens)),
        row("no attention", unattended_logits),
        attending("attention", frozen),
        row("log-odds at test", frozen.logits, jsd=0.0, uniform_texts=uniform),
        attending("log-odds in training", freeze(fixed, test, scores)),
        attending("regularised", freeze(pulled, test, scores)),
        *(_row(**columns) for columns in substituted),
    ]


def _train(
    corpus: Corpus, settings: RunSettings, kind: type[M], towards: Lexical | None = None
) -> M:
    """Train a variant like `attention`; pull its attention `towards` fixed scores, if given."""
    assert isinstance(settings.train, TrainSettings)
    model, _, _ = init_model(corpus, settings, kind)
    split, dev = (
        model.encoded(part.texts, part.labels)
        for part in (corpus.splits["train"], corpus.splits["dev"])
    )
    loss = None if towards is None else regularised(cross_entropy(model, split), towards)
    fit(AttentionObjective(model, split, dev, settings.train, loss))
    return model.cpu()


def _fixed(settings: RunSettings) -> RunSettings:
    """Return the settings with attention fixed to softmax(|log-odds|)."""
    fixed = settings.model.model_copy(update={"score": "log_odds", "normaliser": "softmax"})
    return settings.model_copy(update={"model": fixed})


def _row(**values: Any) -> dict[str, Any]:
    """Return all columns; None for what is missing or not a number, which JSON cannot hold."""
    finite = {
        k: None if isinstance(v, float) and not np.isfinite(v) else v for k, v in values.items()
    }
    return {name: finite.get(name) for name in COLUMNS}


def _check_same(
    run: Run, corpus: Corpus, encoder: str, score: str, seed: int, training: dict[str, Any]
) -> None:
    model, training_settings = run.settings.model, run.settings.train
    if not isinstance(model, ModelSettings) or not isinstance(training_settings, TrainSettings):
        raise InputError(f"{run.name}: expected an attention model that heedmap trained")
    if training:
        raise InputError(
            f"{', '.join(training)}: a trained model has its own; expected either it or training options"
        )
    if run.settings.fingerprint != corpus.fingerprint():
        raise InputError(f"{run.name}: trained on another corpus than {corpus.name}")
    expected, actual = (encoder, score, seed), (model.encoder, model.score, training_settings.seed)
    if expected != actual:
        raise InputError(
            f"{run.name}: expected encoder, score and seed {expected}, the trained model has {actual}"
        )
