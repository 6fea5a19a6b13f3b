"""The same classifier without attention: the decoder reads the encoder's last state ("vanilla")."""

from collections.abc import Sequence

from torch import Tensor

from heedmap.data.batches import Batch
from heedmap.data.vocabulary import Vocabulary
from heedmap.errors import InputError
from heedmap.models.attention_classifier import AttentionClassifier
from heedmap.models.scores import Lexical
from heedmap.models.trace import Trace
from heedmap.settings import ModelSettings


class NoAttention(AttentionClassifier):
    """logits = decoder(last(h)), of single texts: there are no weights to put on trial.

    Unlike in the released code, what `last` gives never depends on the padding (`models/encoders.py`).
    """

    def __init__(
        self,
        settings: ModelSettings,
        vocabulary: Vocabulary,
        classes: Sequence[str],
        pairs: bool = False,
    ) -> None:
        if pairs:
            raise InputError("no attention: expected single texts, got pairs of texts")
        super().__init__(settings, vocabulary, classes)
        self.score = Lexical(len(vocabulary))  # nothing that could be trained

    def trace(self, batch: Batch) -> Trace:
        """There is none.

        Raises:
            InputError: always.
        """
        raise InputError("a model without attention has no weights to put on trial")

    def _outputs(
        self, embedded: Tensor, batch: Batch, attention: Tensor | None
    ) -> tuple[Tensor, Tensor]:
        lengths = batch.lengths + 2
        last = self.encoder.last(self.encoder(embedded, lengths), lengths)
        nothing = embedded.new_zeros(batch.mask.shape).unsqueeze(1)  # no position has any weight
        return self.projection(last), nothing
