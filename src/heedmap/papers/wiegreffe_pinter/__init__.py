"""Wiegreffe & Pinter 2019, "Attention is not not Explanation"."""
