"""Pruthi et al. 2020, "Learning to Deceive with Attention-Based Explanations": the classification tasks."""
