"""Products and activations against those of PyTorch, and what a model does with them."""

import copy

import pytest
import torch
from torch import nn
from torch.autograd import forward_ad
from torch.nn import functional
from torch.overrides import _get_current_function_mode_stack

from heedmap.huggingface.model_adapter import attach, detach
from heedmap.huggingface.zoo import architecture
from heedmap.models import kernels
from heedmap.models.kernels import FastProducts, product, tanh_

# PyTorch warns of something else wherever oneDNN is switched off.
pytestmark = pytest.mark.filterwarnings("ignore:TF32 acceleration")
ONEDNN = getattr(torch.ops.mkldnn, "_linear_pointwise", None)
needs_onednn = pytest.mark.skipif(
    ONEDNN is None or torch.backends.cpu.get_cpu_capability() not in ("AVX2", "AVX512"),
    reason="PyTorch has no oneDNN here",
)
SHAPES = [((0, 64), 64), ((1, 8), 3), ((64,), 20000), ((4096, 300), 128), ((3, 0, 20), 16),
          ((3, 700, 30), 17), ((1, 40_000), 40), ((2, 2, 500, 96), 96)]  # fmt: skip


@pytest.fixture(autouse=True)
def by_onednn(monkeypatch):
    """oneDNN multiplies on every processor that can, and what it is called with is noted."""
    calls = []
    if ONEDNN is not None:
        monkeypatch.setattr(kernels, "onednn", lambda *given: calls.append(given) or ONEDNN(*given))
    return calls


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_tanh_is_that_of_pytorch_to_the_rounding_of_the_type(dtype):
    values = torch.cat([torch.linspace(-20, 20, 4001), torch.tensor([0.0, 1e-8, 1e4, -1e4])])
    values = torch.cat([values, torch.tensor([torch.inf, -torch.inf])]).to(dtype)
    expected = values.double().tanh()
    assert (tanh_(values).double() - expected).abs().max() <= 2 * torch.finfo(dtype).eps


@pytest.mark.parametrize(("shape", "columns"), SHAPES)
@pytest.mark.parametrize("biased", [True, False])
def test_a_product_and_its_gradients_are_those_of_a_linear_layer(shape, columns, biased):
    generator = torch.Generator().manual_seed(0)
    values, weight, bias, ahead = (
        torch.randn(size, generator=generator)
        for size in (shape, (columns, shape[-1]), (columns,), (*shape[:-1], columns))
    )
    given = [values, weight, *([bias] if biased else [])]
    with torch.no_grad():
        assert_near(product(*given), functional.linear(*given))
    outcomes = []
    for multiply in (product, functional.linear):
        leaves = [x.clone().requires_grad_() for x in given]
        first = torch.autograd.grad(
            (multiply(*leaves) * ahead).square().sum(), leaves, create_graph=True
        )
        again = torch.autograd.grad(sum(g.square().sum() for g in first), leaves)
        outcomes.append([*first, *again])
    for one, other in zip(*outcomes, strict=True):
        assert_near(one, other)


def dual_tangent(function, values):
    with forward_ad.dual_level():
        return forward_ad.unpack_dual(function(forward_ad.make_dual(values, values.cos()))).tangent


TRANSFORMS = {
    "jvp": lambda f, x: torch.func.jvp(f, (x,), (x.cos(),))[1],
    "jvp of a jvp": lambda f, x: torch.func.jvp(
        lambda y: torch.func.jvp(f, (y,), (y.cos(),))[1], (x,), (x.sin(),)
    )[1],
    "a dual level": dual_tangent,
    "vmap": lambda f, x: torch.func.vmap(f)(x.unflatten(0, (3, -1))),
    "grad": lambda f, x: torch.func.grad(lambda y: f(y).square().sum())(x),
    "forward over reverse": lambda f, x: torch.func.jvp(
        torch.func.grad(lambda y: f(y).square().sum()), (x,), (x.cos(),)
    )[1],
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("recorded", [True, False])
@pytest.mark.parametrize("biased", [True, False])
def test_a_product_passes_every_derivative_and_transform_on(transform, recorded, biased):
    generator = torch.Generator().manual_seed(2)
    values, weight, bias = (
        torch.randn(*size, generator=generator) for size in ((1200, 40), (40, 40), (40,))
    )
    bias = bias if biased else None
    assert values.numel() * len(weight) >= kernels.LEAST
    with torch.set_grad_enabled(recorded):
        found, expected = (
            TRANSFORMS[transform](lambda x, by=by: by(x, weight, bias).sin(), values)
            for by in (product, functional.linear)
        )
    assert_near(found, expected)


LAYOUTS = {
    "as they are made": lambda x: x,
    "transposed": lambda x: x.T.contiguous().T,
    "with gaps in both axes": lambda x: x.repeat_interleave(2, 0).repeat_interleave(3, 1)[::2, ::3],
    "within a larger matrix": lambda x: functional.pad(x, (3, 5, 1, 2))[1:-2, 3:-5],
    "one row for all": lambda x: x[:1].expand_as(x),
}


@pytest.mark.parametrize("values_lie", LAYOUTS)
@pytest.mark.parametrize("weights_lie", LAYOUTS)
def test_a_product_does_not_depend_on_how_numbers_lie_in_memory(values_lie, weights_lie):
    generator = torch.Generator().manual_seed(1)
    values, weight = (torch.randn(*size, generator=generator) for size in ((3000, 50), (40, 50)))
    values, weight = LAYOUTS[values_lie](values), LAYOUTS[weights_lie](weight)
    for bias in (None, torch.randn(40, generator=generator), torch.randn(80)[::2]):
        with torch.no_grad():
            assert_near(product(values, weight, bias), functional.linear(values, weight, bias))


def test_what_is_no_number_stays_none_in_a_product():
    values, weight = torch.randn(3000, 50), torch.randn(40, 50)
    values[0, 0], values[1, 0] = torch.nan, torch.inf
    with torch.no_grad():
        found, expected = product(values, weight), functional.linear(values, weight)
    assert torch.equal(found.isnan(), expected.isnan())
    assert torch.equal(found.isinf(), expected.isinf())


def assert_near(one, other):
    assert one.shape == other.shape
    scale = other.abs().max().clamp(min=1.0) if other.numel() else torch.tensor(1.0)
    torch.testing.assert_close(one / scale, other / scale, atol=3e-6, rtol=0)


@needs_onednn
@torch.no_grad()
def test_only_large_products_in_single_precision_go_to_onednn(by_onednn):
    values, weight = torch.zeros(2048, 64), torch.zeros(64, 64)
    product(values, weight)
    assert [tuple(given[0].shape) for given in by_onednn] == [(2048, 64)]
    product(values[:8], weight)
    product(values, weight[:8])
    product(values.double(), weight.double())
    product(values.bfloat16(), weight.bfloat16())
    product(values.as_subclass(type("Own", (torch.Tensor,), {})), weight)
    with torch.backends.mkldnn.flags(enabled=False):
        product(values, weight)
    with torch.enable_grad():
        product(values, weight)
    assert len(by_onednn) == 1


@needs_onednn
@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_an_attached_model_multiplies_by_onednn_and_answers_as_before(name, by_onednn):
    row = architecture(name)
    model = row.build().eval()
    inputs = {key: value.repeat(2000, 1) for key, value in row.tensors().items()}
    with torch.no_grad():
        before = model(**inputs).logits
        assert not by_onednn
        attach(model, row.tensors())
        of_copy = copy.deepcopy(model)
        after = model(**inputs).logits
        assert len(by_onednn) >= 6, "the layers of each block"
        assert not _get_current_function_mode_stack()
        with torch.backends.mkldnn.flags(enabled=False):
            plain = model(**inputs).logits
        detach(model)
        by_onednn.clear()
        again = model(**inputs).logits
        assert not by_onednn
        nn.init.zeros_(next(model.parameters()))
        copied = of_copy(**inputs).logits
    torch.testing.assert_close(after, before, atol=1e-5, rtol=0)
    torch.testing.assert_close(plain, before, atol=1e-5, rtol=0)
    torch.testing.assert_close(again, before, atol=1e-5, rtol=0)
    torch.testing.assert_close(copied, before, atol=1e-5, rtol=0)


def test_fast_products_leave_other_functions_and_keywords_alone():
    layer = nn.Linear(64, 64)
    values = torch.randn(2048, 64)
    with torch.no_grad(), FastProducts():
        of_keywords = functional.linear(weight=layer.weight, input=values, bias=layer.bias)
        added = torch.addmm(layer.bias, values, layer.weight.T)
        matrix = torch.addmm(values, values, layer.weight.T)
        halved = torch.addmm(layer.bias, values, layer.weight.T, beta=0.5)
    for one in (of_keywords, added):
        torch.testing.assert_close(one, layer(values), atol=1e-5, rtol=0)
    torch.testing.assert_close(matrix, values + values @ layer.weight.T, atol=1e-5, rtol=0)
    torch.testing.assert_close(
        halved, 0.5 * layer.bias + values @ layer.weight.T, atol=1e-5, rtol=0
    )
