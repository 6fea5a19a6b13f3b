"""Find other attention for the same input: permuted, or most different with the same prediction."""
