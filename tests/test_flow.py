import networkx as nx
import pytest
import torch
from oracles import rollout_rows
from wording import refused

from heedmap.importance.flow import flow, max_flows
from heedmap.importance.rollout import mixed


def random_layers(layers, n, seed=0, scale=2.0):
    generator = torch.Generator().manual_seed(seed)
    scores = torch.randn(layers, n, n, generator=generator, dtype=torch.float64)
    return (scale * scores).softmax(-1)


def all_real(n):
    return torch.ones(n, dtype=torch.bool)


def written_out(layers, start):
    """Maximum flows by networkx, from the whole network with capacities in floating point."""
    depth, n, _ = layers.shape
    capacity = mixed(layers.unsqueeze(1), torch.ones(1, n, dtype=torch.bool)).squeeze(1)
    network = nx.DiGraph()
    for layer in range(depth):
        for i in range(n):
            for j in range(n):
                pipe = (layer + 1, i), (layer, j)
                network.add_edge(*pipe, capacity=capacity[layer, i, j].item())
    return [nx.maximum_flow_value(network, (depth, start), (0, j)) for j in range(n)]


def test_one_layer_is_its_own_flow():
    layers = torch.tensor([[[0.2, 0.8], [0.5, 0.5]]])
    assert max_flows(layers, 0, all_real(2)).tolist() == pytest.approx([0.6, 0.4], abs=1e-7)
    assert flow(layers, 1, all_real(2)).tolist() == pytest.approx([0.25, 0.75], abs=1e-7)


def test_one_token_has_all_the_flow():
    assert flow(torch.ones(3, 1, 1), 0, all_real(1)).tolist() == [1]


def test_two_layers_of_two_tokens_by_hand():
    # Half of every capacity is attention, half the residual connection.
    below = torch.tensor([[1.0, 0.0], [0.6, 0.4]])  # Â: (1, 0), (.3, .7)
    above = torch.tensor([[0.2, 0.8], [0.0, 1.0]])  # Â: (.6, .4), (0, 1)
    layers = torch.stack([below, above])
    # To the first: .6 straight down, and min(.4, .3) by the second. To the second: min(.4, .7).
    assert max_flows(layers, 0, all_real(2)).tolist() == pytest.approx([0.9, 0.4], abs=1e-7)
    assert flow(layers, 0, all_real(2)).tolist() == pytest.approx([9 / 13, 4 / 13], abs=1e-7)
    assert max_flows(layers, 1, all_real(2)).tolist() == pytest.approx([0.3, 0.7], abs=1e-7)


def test_two_layers_are_the_sum_of_the_narrower_pipe_of_each_path():
    layers = random_layers(2, 6)
    below, above = mixed(layers.unsqueeze(1), torch.ones(1, 6, dtype=torch.bool)).squeeze(1)
    expected = torch.minimum(above[3, :, None], below).sum(0)
    assert torch.allclose(max_flows(layers, 3, all_real(6)), expected, atol=1e-8)


@pytest.mark.parametrize(("depth", "n"), [(1, 2), (2, 1), (2, 3), (3, 2), (3, 4), (4, 5)])
def test_flows_are_networkxs(depth, n):
    for seed in range(4):
        layers = random_layers(depth, n, seed, scale=5.0)
        start = seed % n
        expected = torch.tensor(written_out(layers, start), dtype=torch.float64)
        assert torch.allclose(max_flows(layers, start, all_real(n)), expected, atol=1e-7)
        share = flow(layers, start, all_real(n))
        assert torch.allclose(share, expected / expected.sum(), atol=1e-7)
        assert share.sum().item() == pytest.approx(1)


def test_flow_lies_between_rollout_and_what_enters_the_input():
    for seed in range(10):
        layers = random_layers(4, 7, seed, scale=4.0)
        batched, mask = layers.unsqueeze(1), torch.ones(1, 7, dtype=torch.bool)
        start = torch.eye(7, dtype=torch.float64)[2:3]
        flows = max_flows(layers, 2, all_real(7))
        assert (flows >= rollout_rows(batched, mask, start)[0] - 1e-7).all()
        entering = mixed(batched, mask)[0, 0].sum(0)
        assert (flows <= entering.clamp(max=1) + 1e-7).all()


def test_flow_through_spread_out_attention_tells_of_the_lowest_layer_alone():
    layers = random_layers(6, 25, scale=1.0)
    flows = max_flows(layers, 0, all_real(25))
    entering = mixed(layers[:1], torch.ones(1, 25, dtype=torch.bool))[0].sum(0)
    assert torch.allclose(flows, entering.clamp(max=1), atol=1e-7)
    others = torch.cat([layers[:1], random_layers(5, 25, seed=1, scale=1.0)])
    assert torch.allclose(max_flows(others, 7, all_real(25)), flows, atol=1e-7)


@pytest.mark.parametrize("left", [False, True])
def test_padding_on_either_side_changes_nothing_and_has_no_flow(left):
    layers = random_layers(3, 4)
    alone = flow(layers, 1, all_real(4))
    sides = (2, 0) if left else (0, 2)
    wide = torch.nn.functional.pad(layers, sides * 2, value=torch.nan)
    real = torch.nn.functional.pad(all_real(4), sides)
    together = flow(wide, 1 + sides[0], real)
    assert torch.equal(together, torch.nn.functional.pad(alone, sides))


def test_single_precision_has_the_same_flow():
    layers = random_layers(3, 5)
    low = flow(layers.float(), 0, all_real(5))
    assert torch.allclose(low, flow(layers, 0, all_real(5)), atol=1e-6)


def test_what_has_no_flow_is_refused():
    layers = random_layers(2, 3)
    with refused("one layer", kind=ValueError):
        flow(layers[:0], 0, all_real(3))
    for start in (-1, 2, 3):
        with refused(f"position {start}", kind=ValueError):
            flow(layers, start, torch.tensor([True, True, False]))
    for bad in (-0.1, torch.nan, torch.inf):
        for j in (1, 2):  # on the diagonal a residual connection could hide it
            spoilt = layers.clone()
            spoilt[0, 1, j] = bad
            with refused("finite", "negative", kind=ValueError):
                flow(spoilt, 0, all_real(3))


def test_single_precision_is_widened_before_anything_is_computed_of_it():
    layers = random_layers(3, 5).float()
    real = all_real(5)
    assert torch.equal(max_flows(layers, 0, real), max_flows(layers.double(), 0, real))
