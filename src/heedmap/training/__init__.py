"""Training: one `fit`, the objectives it trains and its checkpoints."""
