"""Planted transformers that are trained: a BERT of two layers, whose last one learns to attend as planted.

Beside the label, every head's [CLS] row of the last layer is taught the plant's weights (cross entropy). All
else is free. Whether it rests on the deciding words is checked as for our own models; and the weights must have
come to be the plant's.
"""

from typing import Any

import torch
from jaxtyping import Float, Int
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from heedmap.calibration.plants import Drawing, Plant, scores_of
from heedmap.calibration.trained import accuracies_of, training_texts
from heedmap.calibration.transformer import POSITIONS, spaced, tokenizer_of
from heedmap.data.corpus import Split
from heedmap.data.vocabulary import SPECIAL, Vocabulary
from heedmap.huggingface.transformer_classifier import TransformerClassifier
from heedmap.measures import total_variation
from heedmap.settings import TransformerSettings
from heedmap.training.fit import fit
from heedmap.training.objective import Objective, Progress, seeded

SIZE, HEADS, LAYERS = 32, 2, 2
EPOCHS, BATCH_SIZE, LEARNING_RATE = 30, 32, 0.003
FARTHEST = 0.2  # mean TVD from the plant's weights


def trained_transformer(
    plant: Plant, vocabulary: Vocabulary, own: Split | None = None
) -> tuple[TransformerClassifier, tuple[float, float]]:
    """Train the model; return it with its two accuracies, which are 0 if its weights are not the plant's."""
    train, dev = training_texts(plant, own)
    with seeded(plant.seed):
        model = _model(plant, vocabulary)
    lesson = _Lesson(model, plant, vocabulary, train, dev)
    trained = fit(lesson)
    classes = [str(c) for c in range(plant.classes)]
    settings = TransformerSettings(source="planted")
    classifier = TransformerClassifier(model.cpu(), tokenizer_of(vocabulary), settings, classes)

    def answers(split: Split) -> Int[Tensor, " N"]:
        batch = classifier.batch(spaced(split).tokens, range(len(split)))
        return classifier.logits(batch).argmax(-1)

    learned = trained.scores[trained.best_epoch]["distance"] <= FARTHEST
    return classifier, accuracies_of(plant, dev, answers) if learned else (0.0, 0.0)


def _model(plant: Plant, vocabulary: Vocabulary) -> Any:
    from transformers import BertConfig, BertForSequenceClassification

    config = BertConfig(
        vocab_size=len(vocabulary),
        hidden_size=SIZE,
        num_hidden_layers=LAYERS,
        num_attention_heads=HEADS,
        intermediate_size=2 * SIZE,
        max_position_embeddings=POSITIONS,
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
        pad_token_id=0,
        id2label={c: str(c) for c in range(plant.classes)},
    )
    make: Any = BertForSequenceClassification._from_config
    return make(config, attn_implementation="eager")


class _Lesson(Objective):
    """The label and the plant's weights."""

    def __init__(
        self, model: nn.Module, plant: Plant, vocabulary: Vocabulary, train: Split, dev: Split
    ) -> None:
        self.vocabulary = vocabulary
        self.plant_scores = Drawing(scores_of(plant, vocabulary))
        self.train_set, self.dev_set = self._encoded(train), self._encoded(dev)
        super().__init__(
            model,
            torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE),
            (self.train_set[0] > 0).sum(1).numpy(),
            self._batch,
            epochs=EPOCHS,
            batch_size=BATCH_SIZE,
            seed=plant.seed,
            made_with={},
        )

    def loss(self, model: nn.Module, batch: Any) -> Float[Tensor, ""]:
        return self._loss_and_rows(model, batch)[0]

    @torch.no_grad()
    def scores(self) -> dict[str, float]:
        loss, rows = self._loss_and_rows(self.model.eval(), self.dev_set)
        distance = total_variation(rows.mean(1), self._weights(self.dev_set[0]))
        return {"loss": float(loss), "distance": float(distance.mean())}

    def is_better(self, scores: dict[str, float], progress: Progress) -> bool:
        best = progress.best_epoch
        return best is None or scores["loss"] < progress.scores[best]["loss"]

    def _loss_and_rows(
        self, model: nn.Module, batch: Any
    ) -> tuple[Float[Tensor, ""], Float[Tensor, "B heads T"]]:
        ids, labels = batch
        output = model(input_ids=ids, attention_mask=(ids > 0).long(), output_attentions=True)
        rows = output.attentions[-1][:, :, 0]
        teaching = -torch.xlogy(self._weights(ids).unsqueeze(1), rows.clamp(min=1e-9))
        label: Tensor = functional.cross_entropy(output.logits, labels)
        return label + teaching.sum(-1).mean(), rows

    def _encoded(self, split: Split) -> tuple[Int[Tensor, "N T"], Int[Tensor, " N"]]:
        # [CLS] and [SEP] have the numbers of a text's first and last mark.
        ids = [torch.tensor(self.vocabulary.encode(text)) for text in split.tokens]
        padded = nn.utils.rnn.pad_sequence(ids, batch_first=True)
        return padded, torch.from_numpy(split.labels)

    def _batch(self, rows: NDArray[Any]) -> tuple[Tensor, Tensor]:
        ids, labels = (part[torch.from_numpy(rows)] for part in self.train_set)
        return ids[:, : int((ids > 0).sum(1).max())], labels

    def _weights(self, ids: Int[Tensor, "B T"]) -> Float[Tensor, "B T"]:
        """Return the plant's weights: none on the marks."""
        scores: Tensor = self.plant_scores(ids)
        return scores.masked_fill(ids < len(SPECIAL), -torch.inf).softmax(-1)
