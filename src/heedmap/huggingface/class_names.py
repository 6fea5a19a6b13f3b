"""Read the names of a classifier's outputs from its configuration, before any weights are loaded."""

from collections.abc import Iterable, Mapping
from typing import Any

from transformers import PreTrainedConfig

from heedmap.errors import InputError
from heedmap.terminal.output import some_of


def class_names(id2label: Mapping[Any, Any] | None, model_name: str) -> list[str]:
    """Return the names of a model's outputs in their order.

    Args:
        id2label: of the model's configuration: the name of each output, by its number from 0 up.
        model_name: as the error message gives it.

    Raises:
        InputError: the numbers are not 0 to n - 1, so that it is not certain which output a name is of.
    """
    names = {str(number): str(name) for number, name in (id2label or {}).items()}
    check_numbers(names, model_name)
    return [names[str(i)] for i in range(len(names))]


def check_numbers(numbers: Iterable[str], model_name: str) -> None:
    """Refuse numbers of outputs other than 0 to n - 1, which transformers would shift or renumber.

    Raises:
        InputError: with the numbers that came.
    """
    written = list(numbers)
    if set(written) != {str(i) for i in range(len(written))}:
        raise InputError(
            f"expected the classes of {model_name} by the numbers of its outputs, 0 to {len(written) - 1}; its "
            f"config.json (id2label) has {some_of(written)}, which does not say the output of each "
            "name; correct the numbers"
        )


def contradiction(config: PreTrainedConfig) -> str | None:
    """Describe class names to which a configuration gives two numbers; None where there are none."""
    names = {str(name): int(number) for number, name in (config.id2label or {}).items()}
    numbers = config.label2id if isinstance(config.label2id, dict) else {}
    contradicted = [
        name for name in names if name in numbers and str(numbers[name]) != str(names[name])
    ]
    if not contradicted:
        return None
    listed = some_of(contradicted)
    return (
        f"its config.json gives {listed} other numbers in label2id than in id2label, which is read"
    )
