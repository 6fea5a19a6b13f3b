"""Serrano & Smith, "Is Attention Interpretable?" (2019)."""
