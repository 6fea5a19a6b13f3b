"""Tiny random vision transformers of several architectures, and pictures for them."""

from pathlib import Path

import numpy as np
import torch
import transformers as hf
from PIL import Image
from transformers import PreTrainedModel, ViTImageProcessorPil

SMALL = {
    "hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 4, "patch_size": 4, "num_labels": 3,
}  # fmt: skip
OF_VIT = {**SMALL, "intermediate_size": 24, "image_size": 16}
VISION: dict[str, tuple[type, type, dict[str, object]]] = {
    "vit": (hf.ViTConfig, hf.ViTForImageClassification, OF_VIT),
    "deit": (hf.DeiTConfig, hf.DeiTForImageClassification, OF_VIT),
    "deit with teacher": (hf.DeiTConfig, hf.DeiTForImageClassificationWithTeacher, OF_VIT),
    # Its positions are interpolated, as those of DINOv2 always are: 24 pixels to 16.
    "dinov2": (
        hf.Dinov2Config, hf.Dinov2ForImageClassification, {**SMALL, "mlp_ratio": 2, "image_size": 24},
    ),
    "dinov2 with registers": (
        hf.Dinov2WithRegistersConfig, hf.Dinov2WithRegistersForImageClassification,
        {**SMALL, "mlp_ratio": 2, "image_size": 16, "num_register_tokens": 2},
    ),
}  # fmt: skip
CLASSES = ["cat", "dog", "owl"]
SIZE = 16  # pixels of a side, as all of them read pictures: 4 × 4 patches


def plain_vision(kind: str) -> PreTrainedModel:
    """Return transformers' model alone, with weights large enough for its attention to matter."""
    config, model_class, options = VISION[kind]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        model = model_class(config(**options, id2label=dict(enumerate(CLASSES))))
        with torch.no_grad():
            for name, weight in model.named_parameters():
                if weight.ndim > 1:
                    weight.normal_(0.0, 0.3)
                elif "lambda" in name:
                    weight.fill_(1.0)
    model.set_attn_implementation("eager")
    return model.eval()


def processor() -> ViTImageProcessorPil:
    """Return the preprocessing of all of them."""
    sides = {"height": SIZE, "width": SIZE}
    return ViTImageProcessorPil(size=sides, image_mean=[0.4, 0.5, 0.6], image_std=[0.5, 0.4, 0.3])


def saved_vision(folder: Path, kind: str = "vit") -> Path:
    """Save a model and its preprocessing in a folder."""
    plain_vision(kind).save_pretrained(folder)
    processor().save_pretrained(folder)
    return folder


def picture(seed: int, height: int = 20, width: int = 30) -> np.ndarray:
    """Return random colours, (height, width, 3), of blocks that survive resizing."""
    rng = np.random.default_rng(seed)
    blocks = rng.integers(0, 256, (height // 5, width // 5, 3), dtype=np.uint8)
    return blocks.repeat(5, axis=0).repeat(5, axis=1)


def saved_pictures(folder: Path, per_class: int = 3) -> Path:
    """Save pictures in a folder for each class, as PNG and JPEG."""
    for number, name in enumerate(CLASSES * per_class):
        (folder / name).mkdir(parents=True, exist_ok=True)
        ending = ".png" if number % 2 else ".jpg"
        Image.fromarray(picture(number)).save(folder / name / f"{number}{ending}")
    return folder
