import importlib
import sys

import jaxtyping
import pytest
import torch
from beartype.roar import BeartypeCallHintViolation
from jaxtyping import Float, jaxtyped
from shapes import annotated, called, typechecked
from torch import Tensor

import heedmap.measures


def made(kind, result=Tensor):
    @jaxtyped(typechecker=typechecked)
    def inner(x: kind, y: kind) -> result:
        return y

    return inner


def test_a_function_that_is_made_again_is_checked_again():
    for _ in range(3):
        inner = made(Float[Tensor, " B"])
        assert inner(torch.ones(2), torch.ones(2)).shape == (2,)
        with pytest.raises(TypeError, match="y"):
            inner(torch.ones(2), torch.ones(3))
        with pytest.raises(TypeError, match="x"):
            inner(torch.ones(2, 1), torch.ones(2))


def test_functions_of_one_name_and_other_types_have_their_own_checks():
    rows, numbers = made(Float[Tensor, "B T"]), made(Float[Tensor, " B"])
    assert rows(torch.ones(2, 1), torch.ones(2, 1)).shape == (2, 1)
    assert numbers(torch.ones(2), torch.ones(2)).shape == (2,)
    with pytest.raises(TypeError):
        rows(torch.ones(2), torch.ones(2))
    with pytest.raises(TypeError, match="return value"):
        made(Float[Tensor, " B"], Float[Tensor, "B 1"])(torch.ones(2), torch.ones(2))


def test_the_checks_are_compiled_once():
    def again(x: int) -> int:
        return x

    assert typechecked(again) is typechecked(again)
    with pytest.raises(BeartypeCallHintViolation):
        typechecked(again)("1")


def test_the_package_is_imported_under_them(monkeypatch):
    # A second copy, which replaces the first in this test alone.
    monkeypatch.setattr(heedmap, "measures", heedmap.measures)
    monkeypatch.delitem(sys.modules, "heedmap.measures")
    with jaxtyping.install_import_hook([*annotated()], "shapes.typechecked"):
        measures = importlib.import_module("heedmap.measures")
    with pytest.raises(TypeError, match="total_variation"):
        measures.total_variation(torch.ones(2, 3), torch.ones(2, 4))
    assert "heedmap.measures.total_variation" in called


def test_functions_with_shapes_are_found_wherever_they_are():
    functions = annotated()
    assert "heedmap.measures.total_variation" in functions["heedmap.measures"]
    assert (
        "heedmap.models.classifier.Classifier.logits_from" in functions["heedmap.models.classifier"]
    )
    assert "heedmap.models.trace.Model.logits_from" not in functions["heedmap.models.trace"], (
        "a protocol"
    )
