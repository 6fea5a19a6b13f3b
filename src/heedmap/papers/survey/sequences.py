"""Copying and translating: an encoder-decoder trained with learned and with uniform attention.

The model and its training are those of the reproduction of Snell et al. (2021). Without sentences of the user
the pairs are made: the same words, or each word's own other word with neighbours swapped (as for Lu et al.).
"""

from collections import Counter
from pathlib import Path

import pyarrow as pa

from heedmap.data.parallel import Parallel
from heedmap.models.encoder_decoder import EncoderDecoder, EncoderDecoderSettings
from heedmap.papers.kit.reproduction import Cell
from heedmap.papers.kit.translating import TranslationObjective, accuracy
from heedmap.papers.kit.translators import Encoded, pieces_of, sampled
from heedmap.papers.survey.settings import SurveySettings
from heedmap.training.fit import fit
from heedmap.training.objective import seeded

VOCABULARY = 2000  # sub-words at most
SIZE, BATCH, RATE = 64, 64, 3e-3


def sequence_rows(
    cell: Cell, checkpoints: Path, corpus: Parallel, settings: SurveySettings
) -> pa.Table:
    """Train one model; return one row: the accuracy of the next sub-word on test pairs, under both weights.

    `chance` is the share of the commonest target sub-word of the test pairs.
    """
    train = sampled(corpus.splits["train"], settings.train_pairs)
    pieces = pieces_of(train, VOCABULARY)
    encoded, dev, test = (
        Encoded.of(pairs, pieces) for pairs in (train, corpus.splits["dev"], corpus.splits["test"])
    )
    with seeded(cell["seed"]):
        parts = EncoderDecoderSettings(
            size=SIZE, embedding=SIZE, bidirectional=True, attention=cell["attention"]
        )
        model = EncoderDecoder(parts, len(pieces))
    objective = TranslationObjective(
        model,
        encoded,
        dev,
        epochs=settings.pair_epochs,
        batch_size=BATCH,
        learning_rate=RATE,
        seed=cell["seed"],
        made_with={"settings": settings.model_dump(mode="json"), "cell": dict(cell.columns)},
    )
    fit(objective, checkpoints / "model.safetensors")
    model.eval()
    learned_accuracy = accuracy(model, test)
    model.queries = None  # uniform weights, over the source that is there
    counts = Counter(number for sentence in test.target for number in sentence)
    return pa.table(
        {
            **{name: [value] for name, value in cell.columns.items()},
            "accuracy": [learned_accuracy],
            "uniform_at_test": [accuracy(model, test)],
            "chance": [max(counts.values()) / counts.total()],
            "positions": [counts.total()],
        }
    )
