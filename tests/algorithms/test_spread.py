"""Advantages without calibration: returns of two sizes a hundredfold apart."""

from __future__ import annotations

import pytest
import torch

from rllib_arrow.algorithms.dv3.objectives import ValuedDream
from tests.algorithms.dv3_tools import make_learner, random_batches

H, N = 6, 256


def two_worlds(units: int, generator: torch.Generator):
    """States of two tasks, told apart by one unit, with deviations of 0.1 and 10."""
    is_large = torch.arange(N) % 2 == 1
    states = 0.1 * torch.randn(H, N, units, generator=generator)
    states[..., 0] = is_large.float()
    deviation = torch.where(is_large, 10.0, 0.1)
    returns = 50 * is_large + deviation * torch.randn(H, N, generator=generator)
    values = (50.0 * is_large).expand(H + 1, N)
    blank = torch.zeros(H, N)
    return states, ValuedDream(
        blank, blank, values, blank, blank, returns, torch.ones(H, N)
    )


def test_both_sizes_of_rewards_get_advantages_of_one_size():
    learner = make_learner(advantage_scale="state", critic_lr=3e-2)
    generator = torch.Generator().manual_seed(0)
    units = learner.net.size.gru_units + learner.net.size.latent_units
    for _ in range(400):
        states, valued = two_worlds(units, generator)
        loss, *_ = learner.parts.spread_loss(states, valued)
        learner._descend(loss, "spread")
    states, valued = two_worlds(units, generator)
    _, scale, _ = learner.parts.spread_loss(states, valued)
    advantages = (valued.returns - valued.values[:-1]) / scale
    small, large = advantages[:, ::2].std(), advantages[:, 1::2].std()
    # A normal distribution's deviation is 1.25 of its mean distance.
    assert small.item() == pytest.approx(1.25 / 4.12, rel=0.5)
    assert large.item() == pytest.approx(1.25 / 4.12, rel=0.5)
    # One range for all leaves the small task next to nothing.
    returns = valued.returns.flatten()
    one_range = (returns.quantile(0.95) - returns.quantile(0.05)).clamp(min=1.0)
    assert (valued.returns[:, ::2].std() / one_range) < 0.02 * small


def test_no_spread_is_below_the_floor():
    learner = make_learner(advantage_scale="state", advantage_floor=0.5)
    states, valued = two_worlds(
        learner.net.spread_head[-1].in_features, torch.Generator().manual_seed(0)
    )
    _, scale, _ = learner.parts.spread_loss(states, valued)
    assert (scale == 0.5).all()


def test_the_head_learns_in_an_epoch_and_is_there_only_if_wanted():
    learner = make_learner(advantage_scale="state")
    metrics = learner.learn_epoch(0, random_batches())
    assert learner.net.spread_head[-1].weight.abs().max() > 0
    assert {"return_spread", "spread_grad_norm", "return_range"} <= set(metrics)
    plain = make_learner()
    assert not hasattr(plain.net, "spread_head")
    assert "return_spread" not in plain.learn_epoch(0, random_batches())


def test_an_update_divides_its_advantages_by_the_spread():
    """An untrained head says 0, so that the floor is what is divided by."""
    seen = []
    for floor in (1.0, 100.0):
        learner = make_learner(advantage_scale="state", advantage_floor=floor)
        with torch.no_grad():
            torch.manual_seed(0)
            learner.net.reward_head[-1].weight.normal_(std=0.1)
        batch = {k: learner._to_device(v) for k, v in next(random_batches()).items()}
        loss, scales = learner.parts.actor_critic_loss, []
        learner.parts.actor_critic_loss = lambda *given, scales=scales, loss=loss: (
            scales.append(given[3]) or loss(*given)
        )
        learner._generator.manual_seed(0)
        with torch.no_grad():
            _, posterior = learner._posterior(batch)
        metrics = learner.update_actor_critic(posterior, batch)
        assert (scales[0] == floor).all()
        seen.append(metrics["advantage_std"].item())
    assert seen[0] == pytest.approx(100 * seen[1], rel=1e-3) and seen[0] > 0
