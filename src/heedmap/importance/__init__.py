"""What else says that a token matters: gradients, integrated gradients, leave-one-out."""
