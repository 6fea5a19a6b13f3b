"""Clark et al. 2019, "What Does BERT Look At? An Analysis of BERT's Attention"."""
