"""Texts and labels: reading, splitting, tokens, vocabulary, batches."""
