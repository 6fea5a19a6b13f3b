"""Lu, Zeng, Zhang, Wu & Li, "Attention Calibration for Transformer in Neural Machine Translation" (2021)."""
