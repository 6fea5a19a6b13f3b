"""Define attention models, and the trace that a forward pass returns."""

from heedmap.models.released import from_jain_wallace

__all__ = ["from_jain_wallace"]
