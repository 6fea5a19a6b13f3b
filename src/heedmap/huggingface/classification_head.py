"""Tell from a configuration what a model's outputs are: one class per text, or something else.

The outputs of a classifier are logits of classes that exclude each other. Amounts, and several labels at once,
have as many outputs, and a softmax of them means nothing. A configuration may say so in several ways; one is
enough.
"""

from collections.abc import Iterator, Mapping
from typing import Any

from heedmap.errors import InputError

SINGLE = "single_label_classification"
_OTHER_HEADS = {
    "ForQuestionAnswering": "it marks the answer to a question within a text",
    "ForMultipleChoice": "it chooses among several texts",
    "ForNextSentencePrediction": "it tells whether two sentences follow each other",
}
_HEADLESS = {
    "ForMaskedLM": "it fills in masked words",
    "ForCausalLM": "it continues texts",
    "LMHeadModel": "it continues texts",
    "ForConditionalGeneration": "it writes texts",
    "ForPreTraining": "it is pretrained only",
    "Model": "it is pretrained only",
}


def check_head(config: Mapping[str, Any], model_name: str, *, of_words: bool = False) -> bool:
    """Check what a config.json says of the outputs; errors name it as `model_name`.

    Returns whether they are several labels at once, else classes, as those of a model are that answers
    `of_words`.

    Raises:
        InputError: several amounts, or quantised weights, or a head that classifies nothing.
    """
    if (quantised := config.get("quantization_config")) is not None:
        method = quantised.get("quant_method") if isinstance(quantised, dict) else None
        raise InputError(
            f"expected weights of floating point in {model_name}; they are quantised"
            f"{f' by {method}' if method else ''} (quantization_config in its config.json), which "
            "is not read; choose the model before it was quantised, or save it dequantised"
        )
    if of_words:
        return False
    name = architecture_of(config)
    for ending, does in _OTHER_HEADS.items():
        if name.endswith(ending):
            raise InputError(
                f"expected a text classifier in {model_name}; it is a {name}: {does}; choose a model of "
                "sequence classification"
            )
    kind = config.get("problem_type")
    if kind == SINGLE:
        return False
    if kind not in (None, "regression", "multi_label_classification"):
        raise InputError(
            f"expected as problem_type in the config.json of {model_name} {SINGLE}, multi_label_classification "
            f"or regression, got {kind!r:.60}; correct it, or remove it"
        )
    signs = [("problem_type", kind), *_functions(config)]
    of_one = isinstance(names := config.get("id2label"), dict) and len(names) == 1
    for key, value in signs:
        said = f"its config.json has {key} = {value!s:.60}"
        if (value == "regression" or _names(value, "none")) and not of_one:
            raise InputError(
                f"expected a classifier, or a regression of one output, in {model_name}; its outputs are "
                f"several amounts: {said}; choose a model of single-label classification"
            )
        if value == "multi_label_classification" or (_names(value, "sigmoid") and not of_one):
            return True
    return False


def untrained(config: Mapping[str, Any]) -> str:
    """Describe a model without a classification head by its config.json; empty if that says nothing."""
    name = architecture_of(config)
    does = next((does for ending, does in _HEADLESS.items() if name.endswith(ending)), None)
    return "" if does is None else f"it is a {name}: {does}, and "


def architecture_of(config: Mapping[str, Any]) -> str:
    """Return the name of the class that was saved; empty if it is unknown."""
    names = config.get("architectures")
    return str(names[0]) if isinstance(names, list) and names else ""


def _functions(config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the functions that are applied to the outputs, in the layouts of several libraries."""
    yield "function_to_apply", config.get("function_to_apply")
    tasks = config.get("task_specific_params")
    for task, options in tasks.items() if isinstance(tasks, dict) else ():
        if "classification" in str(task) and isinstance(options, dict):
            yield f"task_specific_params.{task}.function_to_apply", options.get("function_to_apply")
    # Cross-encoders of three classes and more have the identity, and are classifiers all the same.
    key = "sbert_ce_default_activation_function"
    yield key, _activation(config.get(key))
    sentences = config.get("sentence_transformers")
    if isinstance(sentences, dict):
        yield "sentence_transformers.activation_fn", _activation(sentences.get("activation_fn"))


def _activation(value: Any) -> Any:
    return value if _names(value, "sigmoid") else None


def _names(value: Any, function: str) -> bool:
    return isinstance(value, str) and value.lower().rpartition(".")[2] == function
