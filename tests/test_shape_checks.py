import pytest
import torch
from beartype.roar import BeartypeCallHintViolation
from conftest import small_model
from jaxtyping import Float, jaxtyped
from shape_checks import typechecked
from torch import Tensor

from heedmap.measures import total_variation


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


def test_the_package_is_imported_under_them():
    with pytest.raises(TypeError, match="total_variation"):
        total_variation(torch.ones(2, 3), torch.ones(2, 4))
    with pytest.raises(TypeError):
        small_model().batch(3, [0])
