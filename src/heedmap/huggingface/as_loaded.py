"""Compare a model as heedmap reads it with the same model as transformers loads it.

As loaded means: before it is attached, with its own tokenizer and its own eager attention, each text alone and
without padding. Token ids, answers and the attention weights that the model reports must be those of the
attached model, which reads padded batches. The texts are those of `heedmap.huggingface.sample_texts`.
"""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from heedmap.data.texts import Text, joined
from heedmap.data.tokens import pieces
from heedmap.errors import InputError, running_model
from heedmap.huggingface.inputs import SubwordBatch, encode
from heedmap.huggingface.limits import UNLIMITED, longest
from heedmap.huggingface.measuring import WeightRecorder, answer, difference, nearest, roundings
from heedmap.huggingface.model_adapter import ModelAdapter, eagerly, reported, with_weights
from heedmap.huggingface.padding import padding_token, vocabulary_size
from heedmap.huggingface.refusals import REMEDIES
from heedmap.huggingface.sample_texts import PAIRS, WHOLE, sample_texts
from heedmap.huggingface.truncation import truncated


@dataclass(frozen=True)
class Reading:
    """One text or pair as the model reads it alone. `weights` are of every layer, as `_summary` shortens them.

    `parts` are the text, or the two of a pair. `default` is the answer with the model's default attention, of
    the longest text alone.
    """

    name: str
    parts: tuple[str, ...]
    ids: Int[Tensor, " N"]
    answer: Float[Tensor, " C"]
    weights: list[Tensor]
    default: Float[Tensor, " C"] | None = None


@dataclass(frozen=True)
class Comparison:
    """The largest differences over all texts, and the first text that exceeds a limit, if any.

    `weights` is None if the model reports none; `untried` is a length that was too long to try.
    """

    texts: int
    answer: float
    weights: float | None
    default: float | None
    limit: float
    different: str | None
    untried: int | None

    @property
    def explanation(self) -> str:
        """Return the comparison in words."""
        if self.different is not None:
            return self.different
        weights = (
            "it reports no weights" if self.weights is None else f"weights by {self.weights:.1e}"
        )
        said = (
            f"{self.texts} texts read alone as transformers loads the model: token ids are equal, answers "
            f"differ by {self.answer:.1e} (at most {self.limit:.1e}), {weights}"
        )
        if self.default is not None and self.default > self.limit:
            said += (
                f"; its default attention answers the longest one differently by {self.default:.1e}"
            )
        if self.untried is not None:
            said += f"; texts of {self.untried} tokens or more were too long to try"
        return said


@torch.no_grad()
def read(
    model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, *, pairs: bool = False
) -> tuple[list[Reading], int | None]:
    """Read the sample texts, and pairs if asked, each alone; the model must be in eval mode and not attached.

    Returns the readings, and the first length that was too long to try.

    Raises:
        InputError: the model cannot read one of them.
    """
    limit, readings = longest(model, tokenizer), list[Reading]()
    size = vocabulary_size(model)
    if limit <= tokenizer.num_special_tokens_to_add():
        raise InputError(
            f"expected a model and a tokenizer that read texts; {type(model).__name__} has a limit of {limit} "
            "positions, in which no text fits; correct max_position_embeddings in its config.json or "
            "model_max_length in its tokenizer_config.json"
        )
    texts, untried = sample_texts(model, tokenizer)
    by_ids: dict[tuple[int, ...], Reading] = {}
    first_inputs: dict[str, Tensor] = {}
    samples = {name: (text,) for name, text in texts.items()} | (PAIRS if pairs else {})
    for number, (name, parts) in enumerate(samples.items()):
        cut = {"truncation": True, "max_length": limit} if limit < UNLIMITED else {}
        encoding = tokenizer(*parts, return_tensors="pt", verbose=False, **cut)
        tokenizer("", verbose=False)  # a tokenizer keeps the last limit, and would be saved with it
        inputs = {key: part.to(model.device) for key, part in accepted(model, encoding).items()}
        ids = inputs["input_ids"][0]
        if (earlier := by_ids.get(tuple(ids.tolist()))) is not None:
            readings.append(
                Reading(name, parts, ids, earlier.answer, earlier.weights, earlier.default)
            )
            continue
        if size is not None and int(ids.max()) >= size:
            raise InputError(
                f"expected a model that knows its tokenizer's tokens; {type(model).__name__} knows {size}, and "
                f"{name} has token {int(ids.max())}; is the tokenizer this model's own?"
            )
        with running_model(type(model).__name__, name):
            default = answer(model(**inputs))[0].float() if number == 0 else None
            with eagerly(model):
                # Eager, since other kernels give no weights to compare; alone, so that nothing is padded.
                output = with_weights(model, inputs)
        weights = [_summary(part[0]) for part in reported(output)]
        reading = Reading(name, parts, ids, answer(output)[0].float(), weights, default)
        by_ids[tuple(ids.tolist())] = reading
        readings.append(reading)
        first_inputs = first_inputs or inputs
    if len(readings[0].ids) > WHOLE:
        with eagerly(model):
            again = answer(model(**first_inputs))[0].float()
        _refuse_changed(model, readings[0], again)
    return readings, untried


def _refuse_changed(model: PreTrainedModel, longest_text: Reading, again: Tensor) -> None:
    """Refuse a model that answers its longest text differently after it has read shorter ones."""
    off = difference(again, longest_text.answer)
    if off > _tolerance(model, [longest_text])[0]:
        attention = getattr(model.config, "attention_type", "")
        remedy = REMEDIES.get(attention, "choose another model")
        raise InputError(
            f"expected a model that reads every text as it was loaded; {type(model).__name__} answers "
            f"{longest_text.name}, differently by {off:.1e} after it has read shorter ones: its attention "
            f"changes with the length, and stays so; {remedy}"
        )


@torch.no_grad()
def compare(
    readings: Sequence[Reading],
    untried: int | None,
    adapter: ModelAdapter,
    tokenizer: PreTrainedTokenizerBase,
) -> Comparison:
    """Read the same texts in padded batches by the attached model, and compare."""
    model, limit = adapter.model, longest(adapter.model, tokenizer)
    answer_limit, weight_limit = _tolerance(model, readings)
    worst, worst_weights, different = 0.0, None, None
    for reading in readings:
        words = [words_within(tokenizer, reading.parts, limit)]
        ids = encode(tokenizer, words, [0], model.device).ids[0]
        if not torch.equal(ids, reading.ids):
            different = different or f"{reading.name}: its token ids differ"
    if different is not None:
        return Comparison(
            len(readings), worst, worst_weights, None, answer_limit, different, untried
        )
    for group in _groups(readings):
        words = [words_within(tokenizer, reading.parts, limit) for reading in group]
        batch = encode(tokenizer, words, range(len(words)), model.device, padding_token(model))
        recorder = WeightRecorder()
        with adapter.visiting(recorder):
            answers = answer(model(**accepted(model, _inputs(batch, tokenizer)))).float()
        for row, reading in enumerate(group):
            real = batch.real[row]
            off = difference(answers[row], reading.answer)
            worst = max(worst, off)
            if off > answer_limit:
                different = different or (
                    f"{reading.name} is answered differently by {off:.1e} (at most {answer_limit:.1e})"
                )
            if reading.weights and recorder.taken:
                summaries = [_summary(_without_padding(part[row], real)) for part in recorder.taken]
                gap = max(nearest(part, reading.weights) for part in summaries)
                worst_weights = max(worst_weights or 0.0, gap)
                if gap > weight_limit:
                    different = different or (
                        f"{reading.name}: its weights differ by {gap:.1e} (at most {weight_limit:.1e})"
                    )
    drifts = [
        difference(reading.default, reading.answer)
        for reading in readings
        if reading.default is not None
    ]
    return Comparison(
        len(readings),
        worst,
        worst_weights,
        max(drifts, default=None),
        answer_limit,
        different,
        untried,
    )


def _tolerance(model: PreTrainedModel, readings: Sequence[Reading]) -> tuple[float, float]:
    """Return the verification's tolerance for other shapes: of answers, and of weights."""
    unit = torch.finfo(model.dtype).eps * roundings(model.dtype)
    sizes = [float(reading.answer.abs().nan_to_num(0.0, 0.0, 0.0).max()) for reading in readings]
    return unit * max([1.0, *sizes]), unit


def accepted(model: PreTrainedModel, inputs: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """Return the inputs that the model's forward takes by name."""
    names = {"input_ids", "attention_mask", *inspect.signature(model.forward).parameters}
    return {name: part for name, part in inputs.items() if name in names}


def _inputs(batch: SubwordBatch, tokenizer: PreTrainedTokenizerBase) -> dict[str, Tensor]:
    return batch.inputs(tokenizer.model_input_names)


def words_within(tokenizer: PreTrainedTokenizerBase, parts: Sequence[str], limit: int) -> Text:
    """Return the words of a text or pair, cut as the tokenizer cuts it."""
    sides = [pieces(part, "words") for part in parts]
    text = joined(*sides) if len(sides) == 2 else sides[0]
    fitted = truncated(tokenizer, text, limit)
    return text if fitted is None else fitted.text


def _groups(readings: Sequence[Reading]) -> Iterator[list[Reading]]:
    """Yield batches of different texts: the short ones together, and each long one beside a short one."""
    # A text that was cut may be another one.
    readings = [*{tuple(reading.ids.tolist()): reading for reading in readings}.values()]
    short = [r for r in readings if len(r.ids) <= WHOLE and len(r.parts) == 1]
    pairs = [reading for reading in readings if len(reading.parts) == 2]
    for reading in readings:
        if len(reading.ids) > WHOLE and len(reading.parts) == 1:
            yield [reading, *short[-1:]]
    # Pairs by themselves: they hold more end-of-text tokens, of which BART wants as many in all texts.
    yield from filter(None, (short, pairs))


def _without_padding(weights: Tensor, real: Tensor) -> Tensor:
    for dimension in (1, 2):
        if weights.shape[dimension] == len(real):
            weights = weights.index_select(dimension, real.nonzero()[:, 0])
    return weights


def _summary(weights: Float[Tensor, "H Q N"]) -> Tensor:
    """Return all weights of a short text; of longer ones the first, middle and last row, and the mean."""
    if weights.shape[-2] <= WHOLE:
        return weights.float()
    rows = weights[:, [0, weights.shape[1] // 2, -1]].float()
    return torch.cat([rows, weights.float().mean(1, keepdim=True)], 1)
