import pytest
import torch

from rllib_arrow.models.distributions import _count_classes_below, sample_index
from rllib_arrow.models.layers import (
    NormGRUCell,
    StateLinear,
    initialise,
    linear,
)
from rllib_arrow.models.size import StateUnits

UNITS = StateUnits(h=5, groups=3, classes=4)


def make_states(rows: int = 7) -> torch.Tensor:
    generator = torch.Generator().manual_seed(0)
    h = torch.randn(2, rows, UNITS.h, generator=generator)
    drawn = torch.randint(UNITS.classes, (2, rows, UNITS.groups), generator=generator)
    z = torch.nn.functional.one_hot(drawn, UNITS.classes).flatten(2)
    return torch.cat([h, z], -1)


def test_picked_weights_add_up_to_the_product_with_a_one_hot_vector():
    for units in (UNITS, UNITS._replace(h=0)):
        layer = linear(units, 6)
        assert isinstance(layer, StateLinear)
        states = make_states()[..., UNITS.h - units.h :].requires_grad_()
        found = []
        for layer.by_index in (False, True):
            out = layer(states)
            (out * torch.arange(6.0)).sum().backward()
            found.append((out.detach(), states.grad, layer.weight.grad))
            states.grad, layer.weight.grad = None, None
        for dense, picked in zip(*found, strict=True):
            torch.testing.assert_close(picked, dense)


def test_plain_inputs_get_a_plain_layer():
    assert type(linear(3, 2)) is torch.nn.Linear


def test_counting_classes_draws_what_searching_them_draws():
    generator = torch.Generator().manual_seed(0)
    probs = torch.softmax(torch.randn(50, 9, 16, generator=generator), -1)
    uniform = torch.rand(50, 9, generator=generator)
    counted = _count_classes_below(probs, uniform)
    assert torch.equal(counted, sample_index(probs, uniform))
    last = _count_classes_below(probs, torch.ones(50, 9))
    assert torch.equal(last, torch.full((50, 9), 15))


def test_the_normed_gru_is_dreamerv3s_with_its_update_gate_biased_to_keep():
    cell = NormGRUCell(3, 2)
    x, h = torch.randn(4, 3), torch.randn(4, 2)
    gates = torch.cat([x, h], 1) @ cell.linear.weight.t()
    centred = gates - gates.mean(1, keepdim=True)
    gates = centred / (centred.square().mean(1, keepdim=True) + 1e-3).sqrt()
    reset, candidate, update = gates[:, :2], gates[:, 2:4], gates[:, 4:]
    share = 1 / (1 + torch.exp(1 - update))
    new = torch.tanh(candidate / (1 + torch.exp(-reset)))
    torch.testing.assert_close(cell(x, h), share * new + (1 - share) * h)


def test_weights_start_with_the_variance_of_one_over_the_mean_of_in_and_out():
    torch.manual_seed(0)
    layer = torch.nn.Linear(1000, 600)
    initialise(layer)
    std = 800**-0.5
    assert layer.weight.std().item() == pytest.approx(std, rel=0.01)
    assert layer.weight.abs().max().item() == pytest.approx(2 * std / 0.8796, rel=0.01)
    assert not layer.bias.any()
