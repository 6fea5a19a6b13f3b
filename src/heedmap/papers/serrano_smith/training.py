"""Train the paper's six classifiers: hierarchical and flat attention, each with one of three encoders."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn import functional
from torch.optim.lr_scheduler import ReduceLROnPlateau

from heedmap.data.batches import Batch, Encoded
from heedmap.data.corpus import Split
from heedmap.data.vocabulary import SPECIAL, Vocabulary
from heedmap.models.attention_classifier import TextClassifier
from heedmap.models.encoders import SmallCNN
from heedmap.models.hierarchical_classifier import HierarchicalClassifier
from heedmap.papers.serrano_smith.settings import ENCODERS, SerranoSmithSettings
from heedmap.settings.models import ModelSettings
from heedmap.training.evaluation import evaluate
from heedmap.training.objective import Objective, Progress, seeded

WINDOW = 5  # words on either side: gensim's default
VECTOR_SEED = 0


def flat(split: Split) -> list[list[str]]:
    """Return the words of texts of sentences."""
    return [[word for sentence in text for word in sentence.split()] for text in split.tokens]


def texts_for(model: str, split: Split) -> Sequence[Sequence[str]]:
    """Return what a model reads: sentences if it is hierarchical, else words."""
    return split.tokens if model.startswith("han") else flat(split)


def word_vectors(
    splits: Sequence[Split], settings: SerranoSmithSettings
) -> tuple[list[str], Float[Tensor, "V E"]]:
    """Return the words that occur often enough, in alphabetical order, and their vectors, of norm 1.

    Word2vec (CBOW, gensim's defaults) on the sentences of training and dev texts; rarer words are unknown. One
    thread, so that the same texts give the same vectors. The first four rows, of padding and marks, are 0 but
    for the unknown word's, which is the vector of the rarer words together.
    """
    from gensim.models import Word2Vec

    sentences = [sentence.split() for split in splits for text in split.tokens for sentence in text]
    words, counts = np.unique(
        [word for sentence in sentences for word in sentence], return_counts=True
    )
    vocabulary = [str(word) for word in words[counts >= settings.least_count]]
    vocabulary_words = set(vocabulary)
    unknown = SPECIAL[1]
    model = Word2Vec(
        [
            [word if word in vocabulary_words else unknown for word in sentence]
            for sentence in sentences
        ],
        vector_size=settings.embedding_size,
        window=WINDOW,
        min_count=1,
        epochs=settings.vector_epochs,
        seed=VECTOR_SEED,
        workers=1,
        sg=0,
    )
    matrix = np.zeros((len(SPECIAL) + len(vocabulary), settings.embedding_size), np.float32)
    for row, word in enumerate([unknown, *vocabulary], len(SPECIAL) - 1):
        if word in model.wv:
            matrix[1 if word == unknown else row] = model.wv.get_vector(word, norm=True)
    return vocabulary, torch.from_numpy(matrix)


def new_model(
    name: str,
    words: Sequence[str],
    vectors: Float[Tensor, "V E"],
    classes: Sequence[str],
    settings: SerranoSmithSettings,
    seed: int,
) -> TextClassifier:
    """Draw a model's weights: Xavier's for what is linear or a convolution, orthogonal between states.

    Of a GRU's second bias the second quarter is 1: the released code starts it as the bias of an LSTM, whose
    second gate that is. There is an output per class, of two classes too.

    `hidden_size` is the size of a state: half of it per direction of a GRU, or per width of a window.
    """
    kind = HierarchicalClassifier if name.startswith("han") else TextClassifier
    encoder = ENCODERS[name.split("-")[1]]
    sizes = ModelSettings.of(
        encoder=encoder,
        score="wide-additive",
        embedding_size=settings.embedding_size,
        hidden_size=settings.hidden_size // (2 if encoder == "gru" else 1),
        sigmoid=False,
    )
    with seeded(seed):
        model = kind(sizes, Vocabulary(words), classes)
        for parameter_name, parameter in model.named_parameters():
            _initialise(parameter_name, parameter)
    with torch.no_grad():
        model.embedding.weight.copy_(vectors)
    return model


def _initialise(name: str, parameter: nn.Parameter) -> None:
    if "weight_hh" in name:
        nn.init.orthogonal_(parameter)
    elif parameter.dim() > 1:
        nn.init.xavier_uniform_(parameter)
    else:
        nn.init.zeros_(parameter)
        if "bias_hh" in name:
            quarter = len(parameter) // 4
            with torch.no_grad():
                parameter[quarter : 2 * quarter] = 1.0


class Training(Objective):
    """Adam, its rate halved after an epoch without a better dev accuracy; the best epoch's weights are kept."""

    model: TextClassifier

    def __init__(
        self,
        name: str,
        model: TextClassifier,
        train: Encoded,
        dev: Encoded,
        settings: SerranoSmithSettings,
        seed: int,
    ) -> None:
        epochs, self.patience = settings.epochs_of(name)
        super().__init__(
            model,
            torch.optim.Adam(model.parameters(), lr=settings.learning_rate, fused=True),
            train.lengths,
            train.batch,
            epochs=epochs,
            batch_size=settings.batch_size,
            seed=seed,
            made_with={"seed": seed, "model": name, **_made_with(settings)},
        )
        self.dev, self.rate = dev, settings.learning_rate
        self.max_norm = settings.max_norm

    def loss(self, model: nn.Module, batch: Batch) -> Float[Tensor, ""]:
        """Return the mean cross entropy."""
        outputs, _ = model(batch.to(self.model.device))
        return functional.cross_entropy(
            self.model.as_logits(outputs), batch.labels.to(outputs.device)
        )

    def scores(self) -> dict[str, float]:
        """Score the dev split."""
        return evaluate(self.model, self.dev)

    def is_better(self, scores: dict[str, float], progress: Progress) -> bool:
        """Compare accuracies."""
        best = progress.best_epoch
        return best is None or scores["accuracy"] > progress.scores[best]["accuracy"]

    def is_finished(self, progress: Progress) -> bool:
        """Return whether the patience is over."""
        return progress.is_over(self.patience)

    def on_epoch(self, progress: Progress) -> None:
        """Set the learning rate that these dev scores lead to: a resumed training has the same."""
        weight = nn.Parameter(torch.zeros(1))
        optimizer = torch.optim.SGD([weight], lr=self.rate)
        schedule = ReduceLROnPlateau(optimizer, mode="max", factor=0.5, patience=0)
        for scores in progress.scores:
            schedule.step(scores["accuracy"])
        for group in self.optimizer.param_groups:
            group["lr"] = optimizer.param_groups[0]["lr"]


def _made_with(settings: SerranoSmithSettings) -> dict[str, Any]:
    return settings.model_dump(mode="json", exclude={"data", "seeds", "models"})


@contextmanager
def dropout(model: TextClassifier, settings: SerranoSmithSettings) -> Iterator[None]:
    """Drop the inputs of encoders and the logits while the model trains, within the block.

    AllenNLP's last layer drops its *outputs*, and so here. Windows have a dropout of their own besides, in
    hierarchical models.
    """
    is_hierarchical = isinstance(model, HierarchicalClassifier)
    shares: list[tuple[nn.Module, float]]
    if isinstance(model, HierarchicalClassifier):
        shares = [
            (model.word_encoder, settings.word_dropout),
            (model.encoder, settings.sentence_dropout),
        ]
    else:
        shares = [(model.encoder, settings.word_dropout)]
    if is_hierarchical:
        shares += [(e, settings.window_dropout) for e, _ in shares if isinstance(e, SmallCNN)]
    hooks = [
        encoder.register_forward_pre_hook(partial(_drop_input, share)) for encoder, share in shares
    ]
    output_share = settings.output_dropout if is_hierarchical else settings.flat_output_dropout
    hooks.append(model.decoder.register_forward_hook(partial(_drop_output, output_share)))
    try:
        yield
    finally:
        for hook in hooks:
            hook.remove()


def _drop_input(share: float, module: nn.Module, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
    embedded, *rest = inputs
    return (functional.dropout(embedded, share, module.training), *rest)


def _drop_output(share: float, module: nn.Module, inputs: object, output: Tensor) -> Tensor:
    return functional.dropout(output, share, module.training)
