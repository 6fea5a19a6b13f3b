"""Attention models, their one door, and the trace that a forward pass leaves behind."""

from heedmap.models.released import from_jain_wallace

__all__ = ["from_jain_wallace"]
