"""Say in one line why transformers could not load a model, and what to do."""

from pathlib import Path

import torch
from safetensors import SafetensorError

from heedmap.errors import InputError
from heedmap.huggingface.checkpoints import Place

_PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.pkl")
# By the `attention_type` of a configuration.
REMEDIES = {
    "block_sparse": 'set "attention_type": "original_full" in its config.json (another model)'
}
_OF_THE_CONFIGURATION = (
    TypeError, ValueError, KeyError, AttributeError, IndexError, AssertionError, ArithmeticError, RuntimeError,
)  # fmt: skip


def first_line(error: BaseException, longest: int = 160) -> str:
    """Return the first line of what an error says, cut between words, or its type."""
    line = (str(error).strip().splitlines() or [""])[0].rstrip(".: ") or type(error).__name__
    return (
        line if len(line) <= longest else f"{line[:longest].rpartition(' ')[0] or line[:longest]} …"
    )


def no_config(place: Place, error: Exception) -> InputError:
    """Return the refusal of a configuration that could not be read."""
    text = str(error)
    if "custom code" in text or "trust_remote_code" in text:
        return InputError(
            f"expected a model that is part of transformers; {place.what} brings its own code, "
            "which heedmap does not run; choose another model"
        )
    if isinstance(error, ImportError):
        return _no_package(place, error)
    if not place.local and isinstance(error, OSError):
        return InputError(
            f"expected a model's folder or a name on the Hub; there is no folder {place.source}, and the "
            f"Hub gave none ({first_line(error, 400)}); check the name, the network and HF_HUB_OFFLINE"
        )
    return InputError(
        f"expected a readable config.json in {place.what}; {_whole(error)}; save or download the model again"
    )


def no_weights(place: Place, error: Exception) -> InputError:
    """Return the refusal of weights that could not be loaded."""
    text, said = str(error), first_line(error)
    damaged = (
        isinstance(error, SafetensorError | OSError | EOFError) or "safetensor" in text.lower()
    )
    if isinstance(error, ImportError):
        return _no_package(place, error)
    if isinstance(error, OSError) and "file named" in text:
        pickled = place.local and any(any(Path(place.source).glob(p)) for p in _PICKLES)
        message = (
            f"expected safetensors weights in {place.what}; it holds pickled weights only, which can run "
            "anything when read; save them anew with `save_pretrained`"
            if pickled
            else f"expected safetensors weights in {place.what}; there are none (pickled ones are not read); "
            "save the model with `save_pretrained`"
        )
    elif out_of_memory(error):
        message = (
            f"expected a model that fits the memory; {place.what} does not ({said}); choose a smaller "
            "model, or load it with dtype bfloat16"
        )
    elif not damaged and isinstance(error, _OF_THE_CONFIGURATION):
        message = (
            f"expected a config.json in {place.what} of which transformers makes a model; it stops with "
            f"{type(error).__name__} ({said}); bring back the config.json of these weights"
        )
    else:
        message = (
            f"expected readable weights in {place.what}; they are damaged or of another model ({said}); "
            "copy or download them again"
        )
    return InputError(message)


def out_of_memory(error: BaseException) -> bool:
    """Return whether memory has run out, of the machine or of an accelerator."""
    text = str(error).lower()
    return isinstance(error, MemoryError | torch.OutOfMemoryError) or (
        "out of memory" in text or "allocate memory" in text
    )


def _no_package(place: Place, error: ImportError) -> InputError:
    return InputError(
        f"expected the packages that {place.what} needs; one is missing ({first_line(error)}); install it"
    )


def _whole(error: Exception) -> str:
    """Return an error's first two lines: those of configurations name the field in the first alone."""
    lines = [line.strip().rstrip(".:") for line in str(error).strip().splitlines() if line.strip()]
    return ": ".join(lines[:2])[:240] or type(error).__name__
