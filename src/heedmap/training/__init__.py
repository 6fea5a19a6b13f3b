"""Training: an explicit loop around Accelerate."""
