"""Training: one `fit`, the objectives it trains, its checkpoints, and sweeps over many of them."""
