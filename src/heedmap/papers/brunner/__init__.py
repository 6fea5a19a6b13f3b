"""Brunner et al. 2020, "On Identifiability in Transformers": tokens, contributions, effective attention."""
