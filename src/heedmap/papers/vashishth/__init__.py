"""Vashishth, Upadhyay, Tomar & Faruqui (2019), "Attention Interpretability Across NLP Tasks"."""
