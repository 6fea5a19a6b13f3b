"""Tiny audits of every kind of input and model, whose weights are set by hand: nothing is trained for long.

They are written with heedmap's public functions, so that they ask two versions of it the same.
"""

import json
import zlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
import transformers as hf
from tiny_transformers import CONFIGS, tiny_tokenizer
from tiny_vision import CLASSES as OF_PICTURES
from tiny_vision import VISION, picture, processor
from torch import nn

import heedmap as hm

QUICK = {
    "permutations": 5,
    "integrated_gradients_instances": 4,
    "minutes": "all",
    "progress": False,
}
WORDS = ["a", "film", "great", "bad", "plot", "unwatchable", "the", "is", "films", ".", ","]
LENGTHS = (1, 2, 3, 5, 8, 4, 9, 6, 7, 3, 5, 6)
LABELS = ["bad", "good"]


def set_by_hand(model: nn.Module, spread: float = 0.6) -> None:
    """Set every weight to numbers drawn for its name, large enough to attend unevenly."""
    with torch.no_grad():
        for name, weight in model.named_parameters():
            rng = np.random.default_rng(zlib.crc32(name.encode()))
            size = (
                2.5 * spread if "embedding" in name else spread if weight.ndim > 1 else spread / 6
            )
            drawn = torch.from_numpy(rng.normal(0.0, size, tuple(weight.shape)))
            is_scale = weight.ndim == 1 and name.endswith("weight")
            weight.copy_(1 + drawn if is_scale else drawn)


def texts(count: int = len(LENGTHS), seed: int = 0) -> list[str]:
    """Return texts of one to nine words."""
    rng = np.random.default_rng(seed)
    return [" ".join(rng.choice(WORDS, LENGTHS[i % len(LENGTHS)])) for i in range(count)]


def labels(count: int = len(LENGTHS)) -> list[str]:
    """Return a label for each text."""
    return [LABELS[i % 2] for i in range(count)]


def of_own_model(encoder: str) -> hm.Audit:
    """Audit a model of heedmap's own on texts, of which it classifies most as they are labelled."""
    many = texts(160)
    run = made(hm.load(many, labels=labels(160), progress=False), encoder)
    centre(run, many)
    again = made(hm.load(many, labels=agreeing(run, many), progress=False), encoder)
    again.model.load_state_dict(run.model.state_dict())
    return hm.audit(again, **QUICK)


def centre(run: hm.Run, instances: list[str]) -> None:
    """Change the bias of the log-odds so that each of the two classes is predicted for half of the texts."""
    log_odds = np.diff(np.log(run.predict_proba(instances)))
    *_, bias = run.model.parameters()
    with torch.no_grad():
        bias -= float(np.median(log_odds))


def agreeing(run: hm.Run, instances: list[str]) -> list[str]:
    """Return the classes that a model predicts, but the other one of every ninth text."""
    predicted = run.predict(instances)
    return [LABELS[(LABELS.index(name) + (i % 9 == 8)) % 2] for i, name in enumerate(predicted)]


def made(corpus: hm.Corpus, encoder: str) -> hm.Run:
    """Make a model of heedmap's own by a moment of training, of which no weight is kept."""
    sizes = {"embedding_size": 8, "hidden_size": 8}
    run = hm.train(corpus, encoder=encoder, epochs=1, min_df=1, progress=False, **sizes)
    set_by_hand(run.model)
    return run


def of_pairs() -> hm.Audit:
    """Audit a model of heedmap's own on texts with a query."""
    queries = [WORDS[i % 7] for i in range(60)]
    corpus = hm.load(texts(60), labels=labels(60), queries=queries, progress=False)
    return hm.audit(made(corpus, "lstm"), **QUICK)


def of_sentences() -> hm.Audit:
    """Audit a hierarchical model on texts of sentences."""
    rng = np.random.default_rng(3)
    several = [". ".join(texts(int(n), seed=i)) for i, n in enumerate(rng.integers(2, 6, 160))]
    corpus = hm.load(several, labels=labels(160), tokenizer="sentences", progress=False)
    run = made(corpus, "lstm")
    centre(run, several)
    return hm.audit(run, **QUICK)


def transformer(
    architecture: str = "bert",
    kind: type = hf.AutoModelForSequenceClassification,
    spread: float = 0.6,
    **options: object,
) -> tuple[hf.PreTrainedModel, hf.PreTrainedTokenizerBase]:
    """Return a tiny transformer of transformers itself, and its tokenizer."""
    config_class, sizes = CONFIGS[architecture]
    options = {"pad_token_id": 0, "id2label": dict(enumerate(LABELS)), **options}
    model = kind.from_config(config_class(**sizes, **options))
    set_by_hand(model, spread)
    return model.eval(), tiny_tokenizer(architecture)


def of_transformer(architecture: str = "bert", **settings: object) -> hm.Audit:
    """Audit a classifier of texts."""
    loaded, several = transformer(architecture), texts(24)
    answers = agreeing(hm.open_model(loaded, several, progress=False), several)
    run = hm.open_model(loaded, several, labels=answers, progress=False, **settings)
    return hm.audit(run, **QUICK)


def of_text_pairs() -> hm.Audit:
    """Audit a classifier of pairs of texts."""
    queries = [" ".join(WORDS[i % 5 : i % 5 + 2]) for i in range(len(LENGTHS))]
    run = hm.open_model(transformer(), texts(), labels=labels(), queries=queries, progress=False)
    return hm.audit(run, **QUICK)


def of_one_label() -> hm.Audit:
    """Audit one label of a model of several."""
    loaded = transformer(problem_type="multi_label_classification")
    run = hm.open_model(loaded, texts(24), output="good", threshold=0.62, progress=False)
    return hm.audit(run, **QUICK)


def of_number() -> hm.Audit:
    """Audit a model that gives a number."""
    loaded = transformer(id2label={0: "stars"}, problem_type="regression")
    numbers = [0.5 * i for i in range(len(LENGTHS))]
    run = hm.open_model(loaded, texts(), labels=numbers, progress=False)
    return hm.audit(run, **QUICK)


def of_tagged_words(folder: Path) -> hm.Audit:
    """Audit a token classifier, which is asked about one word of each text."""
    loaded = transformer(kind=hf.AutoModelForTokenClassification)
    rows = [
        {"tokens": text.split(), "tags": [LABELS[i % 2] for i, _ in enumerate(text.split())]}
        for text in texts()
    ]
    run = hm.open_model(loaded, in_lines(folder, rows), progress=False)
    return hm.audit(run, **QUICK)


def of_hidden_words(folder: Path) -> hm.Audit:
    """Audit a masked language model, which is asked which of two words is hidden."""
    loaded = transformer(kind=hf.AutoModelForMaskedLM, spread=0.3)
    rows = [
        {
            "text": f"{text} [MASK] {WORDS[i % 9]}",
            "target": ("film", "plot")[i % 2],
            "foil": ("plot", "film")[i % 2],
        }
        for i, text in enumerate(texts(12, seed=1))
    ]
    run = hm.open_model(loaded, in_lines(folder, rows), progress=False)
    return hm.audit(run, **QUICK)


def in_lines(folder: Path, rows: list[dict[str, object]]) -> Path:
    """Write rows as a JSONL file."""
    path = folder / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def of_pictures() -> hm.Audit:
    """Audit a classifier of pictures."""
    config, model_class, sizes = VISION["vit"]
    model = model_class(config(**sizes, id2label=dict(enumerate(OF_PICTURES))))
    set_by_hand(model, spread=0.3)
    with torch.no_grad():
        model.classifier.bias += torch.tensor([0.0, 2.2, 1.05])  # each class is predicted
    model.set_attn_implementation("eager")
    pictures = [picture(i) for i in range(9)]
    run = hm.open_model(
        (model.eval(), processor()), pictures, labels=OF_PICTURES * 3, progress=False
    )
    return hm.audit(run, **QUICK)


def vectors(count: int) -> list[np.ndarray]:
    """Return bags of vectors."""
    rng = np.random.default_rng(5)
    return [
        rng.normal(size=(LENGTHS[i % len(LENGTHS)], 4)).astype(np.float32) for i in range(count)
    ]


def of_bags() -> hm.Audit:
    """Audit a model of heedmap's own on bags of vectors."""
    run = hm.train(hm.load_bags(vectors(60), labels(60)), epochs=1, progress=False)
    set_by_hand(run.model, spread=0.4)
    with torch.no_grad():
        run.model.decoder.bias += 2.0  # each class is predicted
    return hm.audit(run, **QUICK)


class Pooling(nn.Module):
    """A module of a user's own, which weighs the items of a bag."""

    def __init__(self) -> None:
        super().__init__()
        self.score, self.head = nn.Linear(4, 1), nn.Linear(4, 2)

    def forward(self, bag: torch.Tensor) -> torch.Tensor:
        """Return the logits of one bag, (T, 4)."""
        return self.head(self.score(bag).softmax(0).T @ bag)


def of_module() -> hm.Audit:
    """Audit a module of a user's own."""
    module = Pooling()
    set_by_hand(module, spread=1.5)
    bags = vectors(len(LENGTHS))
    return hm.audit(
        hm.open_pooling(module, bags, labels=labels(), classes=LABELS, layer="score"), **QUICK
    )


def of_arrays() -> hm.Audit:
    """Audit weights of any framework, from arrays."""
    rng = np.random.default_rng(7)
    values = vectors(len(LENGTHS))
    weights = [rng.dirichlet(np.full(len(bag), 0.5)) for bag in values]
    weight, bias = rng.normal(size=(2, 4)), rng.normal(size=2)
    run = hm.from_arrays(
        weights, values=values, weight=weight, bias=bias, labels=labels(), classes=LABELS
    )
    return hm.audit(run, **QUICK)


AUDITS: dict[str, Callable[[Path], hm.Audit]] = {
    "lstm": lambda _: of_own_model("lstm"),
    "cnn": lambda _: of_own_model("cnn"),
    "average": lambda _: of_own_model("average"),
    "sentences": lambda _: of_sentences(),
    "pair": lambda _: of_pairs(),
    "transformer": lambda _: of_transformer(),
    "rollout": lambda _: of_transformer(view="rollout"),
    "decoder": lambda _: of_transformer("gpt2"),
    "transformer-pair": lambda _: of_text_pairs(),
    "one-label": lambda _: of_one_label(),
    "number": lambda _: of_number(),
    "word": of_tagged_words,
    "hidden-word": of_hidden_words,
    "pictures": lambda _: of_pictures(),
    "bags": lambda _: of_bags(),
    "module": lambda _: of_module(),
    "arrays": lambda _: of_arrays(),
}
