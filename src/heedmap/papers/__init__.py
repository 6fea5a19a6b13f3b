"""Published experiments, reproduced: one package per paper."""
