"""Anchors: what pulls weights back, how strongly, and after a restore."""

from __future__ import annotations

import pytest
import torch

from rllib_arrow.algorithms.dv3.anchors import FISHER, MEAN, pull_to_mean
from tests.algorithms.dv3_tools import make_learner, random_batches
from tests.algorithms.test_dv3_learner import assert_same_weights, weights_of


def distance(learner, weights, part: str) -> float:
    now = learner.net.state_dict()
    keys = [key for key in now if key.startswith(part)]
    return sum(float((now[key] - weights[key]).square().sum()) for key in keys)


def weighted_distance(learner, start, fishers) -> float:
    """How far the weights are from those of `start`, important ones counting more."""
    triples = zip(learner, start, fishers, strict=True)
    return sum(float((f * (a - b).square()).sum()) for a, b, f in triples)


def test_important_weights_are_pulled_to_their_mean_by_hand():
    weight = torch.nn.Parameter(torch.tensor([1.0, 1.0]))
    optimizer = torch.optim.Adam([weight], lr=0.0)
    gradients = torch.tensor([3.0, 1.0])  # a Fisher information of 9 and 1, 5 in mean
    weight.grad = gradients.clone()
    optimizer.step()
    pull_to_mean(optimizer, scale=0.1, updates=4)
    state = optimizer.state[weight]
    assert weight.tolist() == [1.0, 1.0]
    assert state[FISHER].tolist() == [9.0, 1.0]
    with torch.no_grad():
        weight.copy_(torch.tensor([2.0, 2.0]))
    pull_to_mean(optimizer, scale=0.1, updates=4)
    # Shares of 0.1 * 9 / 5 and 0.1 * 1 / 5 of the way from 2 back to 1.
    assert weight.tolist() == pytest.approx([1.82, 1.98])
    assert state[MEAN].tolist() == pytest.approx([1 + 0.82 / 4, 1 + 0.98 / 4])
    weight.grad = torch.zeros(2)
    pull_to_mean(optimizer, scale=0.1, updates=4)
    assert state[FISHER].tolist() == pytest.approx([6.75, 0.75])


def test_online_ewc_holds_what_is_important_in_actor_and_world_model():
    settings = {"actor_lr": 1e-3, "world_model_lr": 1e-3, "interleaved": True}
    settings |= {"world_model_updates": 8, "actor_critic_updates": 8}
    free, held = make_learner(**settings), make_learner(**settings, ewc_scale=0.5)
    for name in ("world_model", "actor"):
        learned = []
        for learner in (free, held):
            optimizer = learner.get_optimizer("default_policy", name)
            learned.append(optimizer.param_groups[0]["params"])
        start = [param.detach().clone() for param in learned[0]]
        for learner in (free, held):
            learner.learn_epoch(0, random_batches())
        fishers = [state[FISHER] for state in optimizer.state.values()]
        moved = [weighted_distance(params, start, fishers) for params in learned]
        assert moved[1] < 0.7 * moved[0], name


def test_a_strong_pull_to_the_initial_weights_keeps_all_there():
    learner = make_learner(l2_init_scale=1e4, interleaved=True)  # all of the way
    start = weights_of(learner)
    learner.learn_epoch(0, random_batches())
    for part in ("actor", "critic", "encoder", "rssm", "decoder"):
        assert distance(learner, start, part) == 0.0


def test_a_restored_learner_knows_means_and_initial_weights():
    settings = {"ewc_scale": 0.1, "l2_init_scale": 10.0}
    one, other = make_learner(**settings), make_learner(**settings)
    one.learn_epoch(0, random_batches(0))
    other.set_state(one.get_state())
    for learner in (one, other):
        learner.learn_epoch(1, random_batches(1))
    assert_same_weights(one, other)
    for name in ("world_model", "actor"):
        states = [
            learner.get_optimizer("default_policy", name).state.values()
            for learner in (one, other)
        ]
        for mine, theirs in zip(*states, strict=True):
            assert torch.equal(mine[MEAN], theirs[MEAN])
            assert torch.equal(mine[FISHER], theirs[FISHER])
