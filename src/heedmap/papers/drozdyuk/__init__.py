"""Drozdyuk et al., "Is Sparse Attention a Better Explanation?": Table 1, with seeds and controls."""
