"""One text's attention under every intervention of a finished reproduction (the paper's Figures 5 to 10)."""

import json
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heedmap.data.corpus import Split
from heedmap.data.tokens import TOKENIZERS
from heedmap.data.vocabulary import SPECIAL, Vocabulary
from heedmap.errors import InputError
from heedmap.huggingface.door import Visitor
from heedmap.huggingface.interventions import (
    ACTIVATIONS,
    Activation,
    Chain,
    ShuffledKeys,
    Uniform,
)
from heedmap.huggingface.recording import Recorder, picture_weights
from heedmap.papers.drozdyuk import subject_of
from heedmap.papers.drozdyuk_adversaries import keys_for
from heedmap.papers.drozdyuk_files import adversary_from, part_path, read_settings, read_tensors
from heedmap.papers.drozdyuk_model import Subject, new_transformer, numbered, seed_of
from heedmap.papers.drozdyuk_settings import DrozdyukSettings


def pictures(
    folder: str | Path, text: str, *, activation: str = "softmax", seed: int = 0
) -> tuple[list[str], dict[str, Float[Tensor, "L H Q N"]]]:
    """The tokens as the model reads them, and the weights by the name of the intervention.

    The first is `original`. Shuffles and noise are drawn from the seed, so a text always gives the same.

    Raises:
        InputError: no such part in the folder, an empty text.
    """
    folder = Path(folder)
    settings = read_settings(folder)
    path = part_path(folder, activation, seed)
    if not path.exists():
        there = ", ".join(sorted(p.stem for p in path.parent.glob("*.parquet"))) or "none"
        raise InputError(f"{folder}: no part {path.stem} there; finished parts: {there}")
    owners = read_tensors(path.with_suffix(".safetensors"))
    tokens, inputs, subject = _read(folder, settings, owners, text, activation, seed)
    own, mask = Activation(activation), inputs["attention_mask"].bool()
    clean = Recorder()
    with torch.no_grad():
        subject.logits(inputs, recorder=clean)

    def drawn(name: str) -> torch.Generator:
        return torch.Generator().manual_seed(seed_of(seed, name, "picture"))

    visitors: dict[str, Visitor] = {"original": own, "uniform": Chain(Uniform(), own)}
    others = [name for name in ACTIVATIONS if name != activation]
    visitors |= {f"activation:{name}": Activation(name) for name in others}
    visitors["shuffle:positions"] = Chain(ShuffledKeys(mask, drawn("shuffle")), own)
    for attack, tensors in owners.items():
        if attack != "model":
            adversary = adversary_from(tensors)
            visitors[attack] = Chain(keys_for(attack, adversary, clean, drawn(attack)), own)
    return tokens, picture_weights(subject.model, visitors, inputs)


def _read(
    folder: Path,
    settings: DrozdyukSettings,
    owners: dict[str, dict[str, Tensor]],
    text: str,
    activation: str,
    seed: int,
) -> tuple[list[str], dict[str, Tensor], Subject]:
    """The text's tokens and inputs, and the classifier of a part."""
    words = TOKENIZERS[settings.data.tokenizer](text)
    if not words:
        raise InputError("expected a text to picture; got an empty one")
    split = Split(["0"], [words], np.zeros(1, dtype=np.int64))
    if settings.model is not None:
        from heedmap.huggingface.loading import load_classifier, longest

        model, tokenizer = load_classifier(settings.model)
        limit = min(settings.max_length, longest(model, tokenizer))
        encoded = tokenizer(text.strip(), truncation=True, max_length=limit, return_tensors="pt")
        names = [str(name) for name in (model.config.id2label or {}).values()]
        tokens = tokenizer.convert_ids_to_tokens(encoded["input_ids"][0].tolist())
        inputs = {name: encoded[name] for name in ("input_ids", "attention_mask")}
        return list(tokens), inputs, subject_of(model, names)
    known = json.loads((folder / "vocabulary.json").read_text(encoding="utf-8"))
    vocabulary = Vocabulary(known)
    inputs = numbered(split, vocabulary, settings).inputs([0], torch.device("cpu"))
    classes = len(owners["model"]["head.bias"])
    subject = new_transformer(settings, len(vocabulary), classes, activation, seed)
    subject.model.load_state_dict(owners["model"])
    subject.model.eval().requires_grad_(False)
    names = [*SPECIAL, *known]
    return [names[i] for i in inputs["input_ids"][0].tolist()], inputs, subject
