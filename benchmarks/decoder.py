"""Leave-one-out of a causal decoder: keys and values kept before a deletion, against whole passes.

    python -m benchmarks.decoder [--texts 1] [--words 128] [--layers 12] [--size 768]

The decoder is a GPT-2 with random weights, which do for time. The other sides read every text without each of
its tokens whole: one deletion a call, and 32 deletions a call, as Captum's FeatureAblation does with
`perturbations_per_eval=32`. One thread; seconds are the processor's own.
"""

import argparse
import time
from collections.abc import Callable

import torch
from torch import Tensor
from transformers import GPT2Config, GPT2ForSequenceClassification

from heedmap.huggingface.model_adapter import attach, detach
from heedmap.huggingface.prefixes import PrefixReader


def timed(run: Callable[[], Tensor]) -> tuple[float, Tensor]:
    """Return processor seconds and the result."""
    start = time.process_time()
    result = run()
    return time.process_time() - start, result


@torch.no_grad()
def whole(model: GPT2ForSequenceClassification, texts: list[list[int]], at_once: int) -> Tensor:
    """Read texts of equal length whole, some at a time."""
    ids = torch.tensor(texts)
    return torch.cat(
        [model(input_ids=p, attention_mask=torch.ones_like(p)).logits for p in ids.split(at_once)]
    )


def main() -> None:
    """Print a line per way."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--words", type=int, default=128)
    parser.add_argument("--texts", type=int, default=1)
    parser.add_argument("--layers", type=int, default=12)
    parser.add_argument("--size", type=int, default=768)
    parser.add_argument("--positions", type=int, default=2048)
    options = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = GPT2Config(
        n_layer=options.layers, n_embd=options.size, n_head=options.size // 64, pad_token_id=0, use_cache=False
    )  # fmt: skip
    model = GPT2ForSequenceClassification(config).eval()
    texts = torch.randint(1, config.vocab_size, (options.texts, options.words)).tolist()
    changed = [[[*text[:j], *text[j + 1 :]] for j in range(len(text))] for text in texts]
    attach(model)  # as an audit does: its layers multiply by the fastest library
    ours = PrefixReader(model, 0, options.positions)
    seconds, found = timed(lambda: torch.cat(ours.logits(texts, changed)))
    detach(model)  # the others read the model as it is loaded
    print(f"kept before the deletion: {seconds:.2f} s", flush=True)
    for at_once in (32, 1):
        loop, expected = timed(
            lambda at_once=at_once: torch.cat(
                [whole(model, of_text, at_once) for of_text in changed]
            )  # type: ignore[misc]
        )
        off = float((found - expected).abs().max())
        print(
            f"whole, {at_once} a call: {loop:.2f} s, ratio {loop / seconds:.2f}, off by {off:.1e}",
            flush=True,
        )


if __name__ == "__main__":
    main()
