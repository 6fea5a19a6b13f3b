"""An embedding that is not learned: the vectors of items, read from where they are kept."""

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from heedmap.data.item_vectors import ItemVectors
from heedmap.data.item_vocabulary import ItemVocabulary
from heedmap.data.vocabulary import PAD, SPECIAL, Vocabulary


class StoredEmbedding(nn.Embedding):
    """Look up the vectors of items by their numbers. Marks, padding and an unknown item have the vector 0.

    These are its weights, which are not trained: it has no more of them, however many items there are.
    """

    def __init__(self, vectors: ItemVectors) -> None:
        super().__init__(len(SPECIAL), vectors.width, padding_idx=PAD)
        self.vectors = vectors
        self.requires_grad_(False)
        self.weight.zero_()

    def forward(self, input: Int[Tensor, "*shape"]) -> Float[Tensor, "*shape E"]:
        """Return the vectors of these numbers."""
        rows = (input - len(SPECIAL)).flatten()
        is_item = rows >= 0
        vectors = self.weight.new_zeros(len(rows), self.embedding_dim)
        stored = self.vectors.vectors(rows[is_item].cpu().numpy())
        vectors[is_item] = torch.from_numpy(stored).to(vectors)
        return vectors.view(*input.shape, self.embedding_dim)


def embedding_for(vocabulary: Vocabulary, size: int) -> nn.Embedding:
    """Return the embedding of a vocabulary: of words a learned one of this size, of items their own vectors."""
    if isinstance(vocabulary, ItemVocabulary):
        return StoredEmbedding(vocabulary.vectors)
    return nn.Embedding(len(vocabulary), size, padding_idx=PAD)
