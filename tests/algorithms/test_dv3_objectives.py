"""How the losses are put together: every weight, scale and stop, worked by hand.

The heads here know one number in each state and tell what belongs to it.
"""

from __future__ import annotations

import math
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from rllib_arrow.algorithms.dv3.objectives import (
    ValuedDream,
    actor_critic_loss,
    value_dream,
)
from rllib_arrow.algorithms.dv3.rehearsal import rehearsal_loss
from rllib_arrow.models.distributions import BINS
from tests.algorithms.dv3_tools import make_learner, random_batches
from tests.models.test_distributions import dense_two_hot

CPU = {"mixed_precision": False}


class Knows(torch.nn.Module):
    """A head that says of state number n what stands n-th in its list."""

    def __init__(self, *told):
        super().__init__()
        self.told = torch.nn.Parameter(torch.tensor(told, dtype=torch.float32))

    def forward(self, states):
        return self.told[states[..., 0].long()]

    logits = forward


def says(*values: float) -> Knows:
    """A head of two-hot logits that says these values."""
    return Knows(*(np.log(dense_two_hot(v).clip(1e-30)).tolist() for v in values))


def states_of(*numbers: int) -> torch.Tensor:
    """A dream [H + 1, 1, 1] through the states of these numbers."""
    return torch.tensor(numbers, dtype=torch.float32).view(-1, 1, 1)


@pytest.fixture
def valued() -> ValuedDream:
    """A dream of two steps: rewards 1 and 2, each survived with a chance of one half.

    The critic says 10, 30, 40 and its slow copy 7, 8, 9.
    """
    net = SimpleNamespace(
        actor=Knows([0.5, 0.5], [0.5, 0.5], [0.5, 0.5]),
        reward_head=says(0, 1, 2),
        continue_head=Knows([9.0], [0.0], [0.0]),
        critic=says(10, 30, 40),
        slow_critic=says(7, 8, 9),
    )
    config = SimpleNamespace(**CPU, gamma=0.9, gae_lambda=0.5)
    states = states_of(0, 1, 2)
    return value_dream(net, config, states, None, torch.ones(1, dtype=torch.bool))


def column(tensor: torch.Tensor) -> list[float]:
    return tensor[:, 0].tolist()


def test_a_dream_is_discounted_and_valued_as_worked_by_hand(valued):
    # A step's discount is 0.9 / 2, so 2 + 0.45 * 40 = 20 from the second state, and
    # 1 + 0.45 * (30 + 20) / 2 = 12.25 from the first.
    assert column(valued.returns) == pytest.approx([12.25, 20.0], rel=1e-4)
    assert column(valued.weights) == pytest.approx([1.0, 0.45])
    assert column(valued.rewards) == pytest.approx([1.0, 2.0], rel=1e-4)
    assert column(valued.values) == pytest.approx([10.0, 30.0, 40.0], rel=1e-4)
    assert column(valued.slow_values) == pytest.approx([7.0, 8.0], rel=1e-4)


def test_only_what_is_trained_has_a_gradient(valued):
    told = {name for name, part in valued._asdict().items() if part.requires_grad}
    assert told == {"value_logits", "probs"}


@pytest.mark.parametrize(
    ("spread", "scale", "divided_by"),
    [
        (8.0, None, 8.0),
        (0.25, None, 1.0),  # a small range is not blown up
        (8.0, 2.0, 2.0),
    ],
)
def test_advantages_are_divided_by_the_range_or_by_the_states_own(
    spread, scale, divided_by
):
    row = torch.ones(1, 1)
    dream = ValuedDream(
        value_logits=torch.zeros(1, 1, BINS),
        probs=torch.tensor([[[0.5, 0.5]]]),
        values=torch.tensor([[2.0], [0.0]]),
        slow_values=row,
        rewards=row,
        returns=6 * row,
        weights=row,
    )
    config = SimpleNamespace(entropy_scale=0.0, slow_critic_scale=0.0)
    _, metrics = actor_critic_loss(
        config,
        dream,
        torch.zeros(1, 1, dtype=torch.int64),
        torch.tensor(spread),
        None if scale is None else scale * row,
    )
    expected = (6 - 2) / divided_by * math.log(2)
    assert metrics["actor_loss"].item() == pytest.approx(expected)


# The world model: which part each of its losses reaches.


def world_model_gradients(**settings) -> dict[str, torch.Tensor]:
    """The gradient of every weight, of one minibatch and always the same noise."""
    learner = make_learner(free_bits=0.0, **settings)
    with torch.no_grad():  # a head of zeros would pass nothing on
        torch.manual_seed(0)
        learner.net.reward_head[-1].weight.normal_(std=0.1)
    batch = {k: learner._to_device(v) for k, v in next(random_batches()).items()}
    learner._generator.manual_seed(1)
    encoded, posterior = learner._posterior(batch)
    loss, *_ = learner.parts.world_model_loss(
        encoded.images, posterior, batch["rewards"], batch["is_terminated"]
    )
    loss.backward()
    weights = learner.net.named_parameters()
    return {name: w.grad for name, w in weights if w.grad is not None}


def share_of(setting: str) -> dict[str, torch.Tensor]:
    """What a loss adds to the gradients: they are a sum over the losses."""
    scales = ("kl_dynamics_scale", "kl_representation_scale", "reward_loss_scale")
    without = dict.fromkeys(scales, 0.0)
    least, most = (
        world_model_gradients(**without | {setting: scale}) for scale in (0.0, 1.0)
    )
    return {name: most[name] - least[name] for name in most}


def reached(gradients: dict[str, torch.Tensor], part: str) -> bool:
    found = [g.abs().max() > 1e-7 for name, g in gradients.items() if part in name]
    assert found
    return all(found)


def test_the_dynamics_loss_moves_the_prior_and_the_recurrence_behind_it():
    gradients = share_of("kl_dynamics_scale")
    assert reached(gradients, "rssm.prior.")
    assert reached(gradients, "rssm.gru.weight_hh")


def test_the_representation_loss_moves_the_posterior_and_not_the_prior():
    gradients = share_of("kl_representation_scale")
    assert reached(gradients, "rssm.posterior_out") and reached(gradients, "encoder.")
    assert not reached(gradients, "rssm.prior.")


def test_rewards_shape_the_states_down_to_the_encoder():
    gradients = share_of("reward_loss_scale")
    assert reached(gradients, "reward_head") and reached(gradients, "encoder.")
    assert not reached(gradients, "decoder.linear")


# Rehearsal


def test_what_a_dream_does_after_its_end_is_not_cloned():
    """Two siblings each; the first dream ends in success with its first step."""
    net = SimpleNamespace(
        # By state: 0 the start, 1 success and the end, 2 and 3 nothing.
        reward_head=says(0, 1, 0, 0),
        continue_head=Knows([20.0], [-20.0], [20.0], [20.0]),
        critic=says(0, 0, 0, 0),
        actor=Knows(*([math.log(p), math.log(1 - p)] for p in (0.5, 0.1, 0.2, 0.3))),
    )
    config = SimpleNamespace(**CPU, rehearsal_siblings=2, rehearsal_through="logits")
    paths = [(0, 1, 2), (0, 2, 3), (0, 2, 3), (0, 2, 3)]
    states = torch.cat([states_of(*path) for path in paths], 1)
    actions = torch.zeros(2, 4, dtype=torch.int64)
    starts = torch.ones(4, dtype=torch.bool)
    loss, metrics = rehearsal_loss(net, config, states, actions, starts)
    # Of the first dream, the best of four, only the step up to its end is cloned.
    assert loss.item() == pytest.approx(-math.log(0.5), rel=1e-4)
    assert metrics["rehearsal_reached"].item() == pytest.approx(1.0, rel=1e-4)
    assert metrics["rehearsal_cloned"] == 1.0
