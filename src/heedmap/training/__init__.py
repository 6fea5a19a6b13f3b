"""Training: `fit`, its objectives and checkpoints, and sweeps over many trainings."""
