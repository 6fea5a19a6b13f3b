"""Open an existing transformer: its classifier, the texts to audit it on, and facts on both."""

import math
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from torch import nn
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from heedmap.data.corpus import Corpus, Split
from heedmap.data.in_memory import InMemory
from heedmap.data.load import load_corpus
from heedmap.data.text_names import text_name
from heedmap.data.texts import Asked, Text
from heedmap.errors import InputError, running_model
from heedmap.files.identity import weights_hash
from heedmap.files.manifest import folder_written
from heedmap.huggingface import inputs
from heedmap.huggingface.class_names import contradiction
from heedmap.huggingface.configurations import find_model
from heedmap.huggingface.fitting import Cut, fit, merge
from heedmap.huggingface.loading import load_classifier
from heedmap.huggingface.logging import quiet
from heedmap.huggingface.model_adapter import detach
from heedmap.huggingface.one_output import answer_with_two
from heedmap.huggingface.output_texts import predicted_texts
from heedmap.huggingface.pair_models import sign_of_pairs
from heedmap.huggingface.peft_merging import merge_of
from heedmap.huggingface.picture_classifier import PictureClassifier, open_pictures
from heedmap.huggingface.picture_loading import reads_pictures
from heedmap.huggingface.targets import is_dropped, unlike_an_entry
from heedmap.huggingface.tasks import Task
from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.huggingface.verification import verify
from heedmap.models.trace import Model
from heedmap.settings.data import DataSettings
from heedmap.settings.models import TransformerSettings
from heedmap.terminal.output import remark, some_of

_TWO_ENDS = "hold the model's own end-of-text token"
_DROPPED = "ask about a word of which the tokenizer makes no token"
_UNSPACED = (
    "the words of a list are read with no space between them, as transformers reads lists with this tokenizer "
    "(is_split_into_words); for a space, save it with add_prefix_space=True"
)


def open_classifier(
    settings: TransformerSettings,
    folder: Path | None = None,
    device: str | None = None,
    *,
    pairs: bool = False,
) -> tuple[TransformerClassifier, TransformerSettings]:
    """Load the model of the settings (from `folder`, if the run has its own) on a device; hash its weights.

    With `pairs` it is verified on pairs of texts too.

    Raises:
        InputError: it cannot be loaded, or fails the verification.
    """
    place = folder or settings.source
    if reads_pictures(place):
        with running_model(str(place), "opening the model"):
            pictures = open_pictures(settings, place, device)
        pictures.settings = settings.model_copy(update={"weights": fingerprint(pictures.model)})
        return pictures, pictures.settings
    names, output = find_model(place).outputs(settings.output, settings.threshold, settings.unit)
    with running_model(str(place), "opening the model"):
        model, tokenizer = load_classifier(place, settings.dtype, device)
        if output is not None:
            answer_with_two(model, output)
        _check_verified(model, tokenizer, pairs)
        settings = settings.model_copy(update={"weights": fingerprint(model)})
        return TransformerClassifier(model, tokenizer, settings, names), settings


def _check_verified(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, pairs: bool
) -> None:
    if (refusal := verify(model, tokenizer, pairs=pairs).refusal) is not None:
        raise InputError(refusal)


def rehearse(
    model: PreTrainedModel,
    tokenizer: PreTrainedTokenizerBase,
    settings: TransformerSettings,
    classes: Sequence[str],
    *,
    pairs: bool = False,
) -> None:
    """Check before a training whether the model can be put on trial as the settings say.

    Raises:
        InputError: it fails the verification, or has no such layer or head.
    """
    model.train(False)
    _check_verified(model, tokenizer, pairs)
    TransformerClassifier(model, tokenizer, settings, classes)
    detach(model)
    model.train()


def save_classifier(model: Model, folder: Path) -> None:
    """Save the model and its tokenizer or image processor by `save_pretrained`, all files or none."""
    assert isinstance(model, TransformerClassifier)
    with quiet(), folder_written(folder) as partial:
        model.model.save_pretrained(partial)
        model.tokenizer.save_pretrained(partial)


def corpus_for(
    model: TransformerClassifier, settings: DataSettings, in_memory: InMemory | None = None
) -> Corpus:
    """Read test texts that fit the model, with its classes as labels; or take them from `in_memory`.

    Raises:
        InputError: labels that are not the model's classes, or what `load_corpus` raises.
    """
    if isinstance(model, PictureClassifier):
        return fitted(model, model.read_corpus(settings, in_memory))
    return fitted(model, load_corpus(settings, model.classes, in_memory))


def fitted(model: TransformerClassifier, corpus: Corpus) -> Corpus:
    """Fit the test texts to the model (see `heedmap.huggingface.fitting`), and count the changes.

    The classes of a masked language model are named as those of the texts.
    """
    model.classes = list(corpus.classes)
    _check_choices(model, corpus)
    limit = model.limit
    cut = _cut(model, limit, model.settings.long_texts)
    test = corpus.splits["test"]
    readable = model.readable(test.texts)
    if not readable.any():
        raise InputError(
            f"{corpus.settings.source}: expected texts that the model can tell the end of; all of them "
            f"{_TWO_ENDS}; take it out of them"
        )
    unread = {} if readable.all() else {_TWO_ENDS: int((~readable).sum())}
    test = test.take(np.flatnonzero(readable))
    words = [text[text.target] if isinstance(text, Asked) else "" for text in test.texts]
    dropped = {word for word in {*words} - {""} if is_dropped(model.tokenizer, word)}
    asks = np.array([word not in dropped for word in words])
    if not asks.any():
        raise InputError(
            f"{corpus.settings.source}: expected texts that ask about words, got only texts that {_DROPPED}; "
            "is it this model's own tokenizer?"
        )
    if dropped:
        test, unread[_DROPPED] = test.take(np.flatnonzero(asks)), int((~asks).sum())
    test, counted = fit(test, model.lengths, limit, cut)
    # After the windows, because each is tokenised by itself.
    test, merged = merge(test, model.own_words)
    unlike: dict[str, int] = {}
    if model.settings.output is not None:
        test, unlike = predicted_texts(model, test, corpus.settings.source)
    return replace(
        corpus,
        splits={**corpus.splits, "test": test},
        notes=[*corpus.notes, *([_UNSPACED] if test.pretokenized and _is_unspaced(model) else [])],
        left_out={**corpus.left_out, **unread, **counted, **merged, **unlike},
    )


def _is_unspaced(model: TransformerClassifier) -> bool:
    """Return whether the tokenizer reads a list of words otherwise than the text that they make."""
    ids = inputs.token_ids(model.tokenizer, [Asked(["a", " a"], 0, pretokenized=True), ["a", " a"]])
    return ids[0] != ids[1]


def _check_choices(model: TransformerClassifier, corpus: Corpus) -> None:
    """Refuse the first text whose hidden word or foil is no single entry of the model's vocabulary."""
    test = corpus.splits["test"]
    refusals: dict[str, InputError | None] = {}
    for key, pair in zip(test.keys, test.choices or (), strict=False):
        for word in pair:
            if word not in refusals:
                refusals[word] = unlike_an_entry(model.tokenizer, word)
            if (refusal := refusals[word]) is not None:
                raise InputError(f"{corpus.settings.source}, {text_name(key)}: {refusal}")


def fitted_text(
    model: TransformerClassifier, split: Split, long_texts: str
) -> tuple[Split, list[str]]:
    """Return a split of one text or pair that fits the model, cut or in windows, and notes on what was changed.

    Raises:
        InputError: the model cannot tell the end of the text, a word exceeds its limit, or the model is asked
            about a word and none is named.
    """
    if model.task.is_asked_of_words and split.targets is None:
        what = (
            "and --foil the other word, with one [MASK] in the text"
            if model.task is Task.MASKS
            else ""
        )
        raise InputError(
            f"expected with the text the word that the model is asked about, got the text alone; name it with "
            f"{' '.join(filter(None, ('`heedmap explain --target WORD`', what)))}, or audit texts from a file"
        )
    if not model.readable(split.texts)[0]:
        raise InputError(f"expected a text that does not {_TWO_ENDS}; take it out of it")
    limit = model.limit
    words, words_of_query = _word_counts(split)
    fitting, _ = fit(split, model.lengths, limit, _cut(model, limit, long_texts))
    notes = []
    kept_words, kept_of_query = _word_counts(fitting)
    if fitting is not split:
        side = "last" if model.tokenizer.truncation_side == "left" else "first"
        done = (
            f"cut to its {side} {kept_words} of {words} words"
            if long_texts == "cut"
            else f"read in {len(fitting)} windows, each by itself"
        )
        if kept_of_query < words_of_query and long_texts == "cut":
            done += f", and its query to {kept_of_query} of {words_of_query}"
        notes.append(f"the text is longer than the {limit} positions that the model reads: {done}")
    merged, _ = merge(fitting, model.own_words)
    if fewer := kept_words - _word_counts(merged)[0]:
        notes.append(f"words that share a sub-word are shown as one: {fewer} fewer")
    return merged, notes


def _word_counts(split: Split) -> tuple[int, int]:
    """Count the words of a split's texts, and of their queries."""
    return sum(map(len, split.tokens)), sum(map(len, split.queries or ()))


def _cut(model: TransformerClassifier, limit: int, long_texts: str) -> Cut | None:
    """Return what cuts a text as the model's tokenizer does; None where long texts are read in windows."""
    return partial(model.truncated, longest=limit) if long_texts == "cut" else None


def unread_words(
    model: TransformerClassifier, texts: Sequence[Text]
) -> tuple[list[NDArray[np.bool_]], list[str]]:
    """Return which words of each text the model does not read as they are, and notes that count them.

    The tokenizer drops them, or makes unknown tokens of them or of a part.
    """
    batch = model.batch(texts, range(len(texts)))
    marks, unknown, dropped = [], [], []
    for i, text in enumerate(texts):
        ids, words = batch.ids[i].numpy(force=True), batch.words[i].numpy(force=True)
        places = np.arange(len(text))
        of_unknown = np.isin(places, words[ids == model.tokenizer.unk_token_id])
        without = ~np.isin(places, words)
        seen = [word.strip() or repr(word) for word in text]
        unknown += [seen[place] for place in np.flatnonzero(of_unknown).tolist()]
        dropped += [seen[place] for place in np.flatnonzero(without).tolist()]
        marks.append(of_unknown | without)
    total = sum(map(len, texts))
    notes = [
        f"{description} {len(words_unread)} of {total} words: {some_of([*dict.fromkeys(words_unread)])}"
        for description, words_unread in (
            ("the tokenizer does not know", unknown),
            ("the tokenizer drops", dropped),
        )
        if words_unread
    ]
    return marks, notes


def facts(model: TransformerClassifier) -> dict[str, object]:
    """Return what the report says of the model."""
    settings = model.settings
    head = "mean over heads" if model.head is None else f"head {model.head}"
    whose = {
        "first": "the first position's row ([CLS])",
        "last": "the last token's row",
        "target": "the row of the word that is asked about",
        "all": "all rows (the classifier reads them all)",
    }[model.reads]
    views = {
        "row": f"{whose},",
        "received": "attention received, mean over all rows,",
        "rollout": "attention rollout up to",
        "flow": "attention flow up to",
        "gradient": f"|gradient × attention|, {whose},",
        "effective": f"|effective attention|, {whose},",
    }
    return {
        "architecture": model.architecture,
        **({} if (merge := merge_of(model.model)) is None else {"adapter": str(merge)}),
        "entered": model.adapter.kind,
        "device": str(model.model.device),
        "layers": len(model.calls),
        "heads": model.heads,
        "parameters": sum(p.numel() for p in model.model.parameters()),
        "on_trial": f"{views[settings.view]} layer {model.layer} of 0–{len(model.calls) - 1}, {head}",
        "acted_on": (
            f"{'the row' if model.one_row else 'all rows'} of layer {model.layer} "
            f"({'every head' if model.head is None else head})"
        ),
        "reads": model.reads,
        "drift": _drift(model),
        "maps_left_out": {
            view: f"{n} maps: {reason}" for view, (n, reason) in model.missing.items()
        },
    }


def notes(model: TransformerClassifier, *, pairs: bool = False) -> dict[str, object]:
    """Return the report's caveats about the model, and give them as warnings; `pairs` are what it reads."""
    said = contradiction(model.model.config)
    # A warning when it was loaded.
    caveats = [] if said is None else [f"{model.settings.source}: {said}"]
    if not pairs and (sign := sign_of_pairs(model.model.config)) is not None:
        note = (
            f"{model.settings.source} looks like a model of pairs of texts ({sign}): on single texts its "
            "predictions may mean nothing; name the column of the second text with --query-column"
        )
        remark(note)
        caveats.append(note)
    return {"notes": caveats} if caveats else {}


def _drift(model: TransformerClassifier) -> dict[str, object]:
    """Round to two digits, since the others depend on the order of sums; None if nothing was compared."""
    measured = model.drift()
    numbers = {"logits": measured.logits, "tvd": measured.tvd}
    rounded = {
        name: float(f"{x:.1e}") if x is not None and math.isfinite(x) else None
        for name, x in numbers.items()
    }
    of_number = {} if "classes" in model.capabilities else {"unit": model.classes[0]}
    return {"default": measured.default, **rounded, **of_number}


def fingerprint(model: nn.Module) -> str:
    """Hash all weights: equal weights have equal hashes.

    Of a merged model the weights of the base model and of the adapter are hashed, as they were read.
    """
    merge = merge_of(model)
    return weights_hash(model.state_dict()) if merge is None else merge.weights
