"""Snell, Zhong, Klein & Steinhardt, "Approximating How Single Head Attention Learns", and their slides."""
