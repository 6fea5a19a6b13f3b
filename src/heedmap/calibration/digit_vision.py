"""Train a small vision transformer on the pictures whose deciding patch is known (`data/digit_pictures`)."""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn
from transformers import ViTConfig, ViTForImageClassification, ViTImageProcessorPil

from heedmap.data.digit_pictures import CLASSES, PLACES, SIDE, drawn_pictures
from heedmap.files.manifest import folder_written
from heedmap.huggingface.logging import quiet

EPOCHS, BATCH, RATE = 4, 64, 1e-3
SIZES: dict[str, Any] = {
    "hidden_size": 64, "num_hidden_layers": 3, "num_attention_heads": 4, "intermediate_size": 128,
}  # fmt: skip


def train_digit_vision(folder: str | Path, *, seed: int = 0, epochs: int = EPOCHS) -> Path:
    """Train a ViT whose patches are the pictures' places, and save it and its preprocessing in a folder.

    AdamW with a learning rate that falls linearly to 0; the same seed gives the same weights on one thread. One
    core takes about a minute. The saved folder is one for `heedmap audit --model FOLDER --data digit-pictures`.
    """
    config = ViTConfig(
        **SIZES,
        image_size=PLACES * SIDE,
        patch_size=SIDE,
        id2label=dict(enumerate(CLASSES)),
        label2id={name: number for number, name in enumerate(CLASSES)},
        hidden_dropout_prob=0.0,
        attention_probs_dropout_prob=0.0,
    )
    processor = ViTImageProcessorPil(
        size={"height": PLACES * SIDE, "width": PLACES * SIDE},
        image_mean=[0.5] * 3,
        image_std=[0.5] * 3,
    )
    train = list(drawn_pictures("train"))
    pixels = torch.from_numpy(np.stack([picture.colours for picture in train])).permute(0, 3, 1, 2)
    pixels, digits = pixels.float() / 127.5 - 1, torch.tensor([picture.digit for picture in train])
    with torch.random.fork_rng(devices=[]), quiet():
        torch.manual_seed(seed)
        model = ViTForImageClassification(config).train()
        optimizer = torch.optim.AdamW(model.parameters(), lr=RATE)
        steps = epochs * (len(digits) // BATCH)
        schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, steps)
        for _ in range(epochs):
            order = torch.randperm(len(digits))
            for rows in order[: len(digits) // BATCH * BATCH].view(-1, BATCH):
                loss = nn.functional.cross_entropy(
                    model(pixel_values=pixels[rows]).logits, digits[rows]
                )
                optimizer.zero_grad()
                loss.backward()  # type: ignore[no-untyped-call]
                optimizer.step()
                schedule.step()
    with quiet(), folder_written(Path(folder)) as partial:
        model.eval().save_pretrained(partial)
        processor.save_pretrained(partial)
    return Path(folder)
