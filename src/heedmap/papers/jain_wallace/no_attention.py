"""The same classifier without attention: the decoder reads the encoder's last state ("vanilla")."""

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor, nn

from heedmap.data.batches import Batch
from heedmap.data.vocabulary import Vocabulary
from heedmap.models.classifier import Classifier
from heedmap.models.scores import SCORES
from heedmap.settings.models import ModelSettings


class NoAttention(Classifier):
    """logits = decoder(last(h)), of single texts: there are no weights to put on trial.

    Unlike in the released code, what `last` gives never depends on the padding (`models/encoders.py`).
    """

    def __init__(
        self, settings: ModelSettings, vocabulary: Vocabulary, classes: Sequence[str]
    ) -> None:
        super().__init__(settings, vocabulary, classes)
        # Drawn and discarded: the decoder then starts as that of `TextClassifier`.
        SCORES[settings.score](self.encoder.size)
        self.decoder = nn.Linear(self.encoder.size, 1 if len(classes) == 2 else len(classes))

    def outputs(
        self, embedded: Float[Tensor, "B L E"], batch: Batch, attention: Tensor | None
    ) -> tuple[Float[Tensor, "B O"], Float[Tensor, "B 1 T"]]:
        """Return raw outputs, and zeros for the weights."""
        inputs, lengths = self.encoder.reads(embedded, batch.lengths)
        final_state = self.encoder.last(self.encoder(inputs, lengths), lengths)
        return self.decoder(final_state), embedded.new_zeros(batch.mask.shape).unsqueeze(1)
