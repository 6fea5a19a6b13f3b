"""Attention models, their one door, and the trace that a forward pass leaves behind."""
