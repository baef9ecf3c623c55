"""Dream rehearsal: how dreams are graded, what is cloned, and by whom."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from rllib_arrow.algorithms.dv3 import rehearsal
from rllib_arrow.algorithms.dv3.rehearsal import grade_dreams
from tests.algorithms.dv3_tools import B, T, make_learner, random_batches
from tests.algorithms.test_dv3_learner import (
    assert_same_weights,
    changed_parts,
    weights_of,
)

HORIZON, STARTS, SIBLINGS = 12, 200, 4


def corridor_dreams(length: int, value: float, seed: int = 0):
    """Dreams of random walks in a corridor, as heads of a world model tell them.

    At the right end stands the goal: a reward of 1, and the episode ends. At the left
    end is a pit: it ends without one. A dream goes on regardless, and past the end the
    heads say anything. `value` is what the critic promises where a walk goes on.

    Returns:
        rewards, goes_on, values, all [HORIZON, N], and who reached the goal, bool [N].
    """
    rng = np.random.default_rng(seed)
    dreams = STARTS * SIBLINGS
    place = np.repeat(rng.integers(1, length, STARTS), SIBLINGS)
    over, won = np.zeros((2, dreams), bool)
    rows = []
    for _ in range(HORIZON):
        place = place + rng.choice([-1, 1], dreams)
        arrives = ~over & (place == length)
        ends = ~over & ((place == 0) | arrives)
        noise = rng.normal(0, 0.02, dreams)
        beyond = rng.normal(0, 0.5, dreams)
        rewards = np.where(over, beyond, arrives + noise)
        goes_on = np.where(over, rng.random(dreams), np.where(ends, 0.02, 0.98))
        values = value + np.where(over | ends, 10 * beyond, noise)
        rows.append((rewards, goes_on, values))
        over, won = over | ends, won | arrives
    told = (torch.tensor(np.stack(each)) for each in zip(*rows, strict=True))
    return *told, torch.tensor(won)


def auc(grades: torch.Tensor, won: torch.Tensor) -> float:
    """How often the better of two siblings has the better grade; ties count half."""
    right = pairs = 0.0
    for grade, success in zip(
        grades.view(-1, SIBLINGS), won.view(-1, SIBLINGS), strict=True
    ):
        difference = grade[success].unsqueeze(1) - grade[~success]
        right += ((difference > 0) + 0.5 * (difference == 0)).sum().item()
        pairs += difference.numel()
    assert pairs > 50
    return right / pairs


def alive_starts() -> torch.Tensor:
    return torch.ones(STARTS * SIBLINGS, dtype=torch.bool)


def test_grades_tell_success_from_failure_where_return_plus_value_does_not():
    rewards, goes_on, values, won = corridor_dreams(length=6, value=0.5)
    grades, _ = grade_dreams(rewards, goes_on, values[-1], alive_starts(), SIBLINGS)
    assert auc(grades, won) > 0.99
    discounts = 0.997 ** torch.arange(1, HORIZON + 1).unsqueeze(1)
    returns = (discounts * rewards).sum(0) + discounts[-1] * values[-1]
    assert 0.4 < auc(returns, won) < 0.6


def test_what_was_reached_ranks_above_every_promise():
    rewards, goes_on, values, won = corridor_dreams(length=16, value=30.0)
    grades, alive = grade_dreams(rewards, goes_on, values[-1], alive_starts(), SIBLINGS)
    assert auc(grades, won) > 0.99
    surviving = (alive * rewards).sum(0) + alive[-1] * goes_on[-1] * values[-1]
    assert auc(surviving, won) < 0.3


def test_promises_order_dreams_that_reached_the_same():
    rewards = torch.zeros(3, 4)
    goes_on = torch.ones(3, 4)
    goes_on[1, 0] = 0.0  # which dies on its way, whatever it is promised
    values = torch.tensor([9.0, 1.0, 3.0, 2.0])
    grades, _ = grade_dreams(rewards, goes_on, values, torch.ones(4).bool(), 4)
    assert grades.argsort().tolist() == [0, 1, 3, 2]
    assert grades.abs().max() < 2 * rehearsal.LARGEST_PROMISE


def test_grades_by_hand():
    rewards = torch.tensor([[1.0, 0.0], [2.0, 0.0], [4.0, 0.0]])
    goes_on = torch.tensor([[0.5, 1.0], [0.25, 1.0], [0.0, 0.0]])
    starts = torch.tensor([True, True])
    grades, alive = grade_dreams(rewards, goes_on, torch.zeros(2), starts, 2)
    assert alive[:, 0].tolist() == [1.0, 0.5, 0.125]
    assert grades.tolist() == pytest.approx([1.25, -1.25])  # (1 + 1 + 0.5) / 2
    nothing, alive = grade_dreams(rewards, goes_on, torch.ones(2), ~starts, 2)
    assert not alive.any() and not nothing.any()


def fond_of_two(learner, monkeypatch) -> None:
    """Has a learner's rehearsal grade dreams by how often they take action 2."""

    def loss(net, config, states, actions, starts_continue):
        def grade(rewards, goes_on, values, starts, siblings):
            graded = rehearsal._among_siblings((actions == 2).float().sum(0), siblings)
            return graded, torch.ones_like(rewards)

        monkeypatch.setattr(rehearsal, "grade_dreams", grade)
        return rehearsal.rehearsal_loss(net, config, states, actions, starts_continue)

    learner.parts.rehearsal_loss = lambda *dream: loss(
        learner.net, learner.config, *dream
    )


def likes_two(learner, batch) -> float:
    """Returns how likely action 2 is in the states of a minibatch."""
    learner._generator.manual_seed(0)
    states = learner._posterior(batch)[1].states
    return learner.net.actor(states)[..., 2].mean().item()


def test_rehearsal_moves_the_actor_alone_towards_the_best_dreams(monkeypatch):
    """With a grader that likes action 2, action 2 becomes likelier."""
    learner = make_learner(rehearsal_interval=1, actor_lr=3e-3)
    batch = {k: learner._to_device(v) for k, v in next(random_batches()).items()}
    fond_of_two(learner, monkeypatch)
    before, first = weights_of(learner), likes_two(learner, batch)
    for _ in range(30):
        learner.rehearse(batch)
    assert changed_parts(learner, before) == {"actor"}
    assert likes_two(learner, batch) > first + 0.3


def make_sure_of_action_0(learner) -> None:
    out = learner.net.actor[-1]
    with torch.no_grad():
        out.weight.zero_()
        out.bias[:] = torch.tensor([20.0, 0.0, 0.0, 0.0, 0.0])


@pytest.mark.parametrize(("through", "learns"), [("logits", True), ("policy", False)])
def test_a_sure_policy_is_taught_another_action_through_its_logits(
    monkeypatch, through, learns
):
    """Behind the uniform mix there are examples of another action, but no gradient."""
    learner = make_learner(
        rehearsal_interval=1,
        actor_lr=0.03,
        dream_starts=B * T * 4,
        rehearsal_through=through,
    )
    batch = {k: learner._to_device(v) for k, v in next(random_batches()).items()}
    fond_of_two(learner, monkeypatch)
    make_sure_of_action_0(learner)
    assert likes_two(learner, batch) < 0.003
    for _ in range(60):
        learner.rehearse(batch)
    assert (likes_two(learner, batch) > 0.5) == learns


def test_neighbours_dream_from_one_start_each_family_from_its_own():
    learner = make_learner(rehearsal_interval=1, dream_starts=8)
    assert learner.config.rehearsal_siblings == 4
    batch = {k: learner._to_device(v) for k, v in next(random_batches()).items()}
    batch["is_terminated"] = torch.arange(T * B).view(T, B) % 2 == 0
    dreamt = []
    loss = learner.parts.rehearsal_loss
    learner.parts.rehearsal_loss = lambda *dream: dreamt.append(dream) or loss(*dream)
    learner._generator.manual_seed(2)
    learner.rehearse(batch)
    learner._generator.manual_seed(2)
    _, posterior = learner._posterior(batch)
    places = torch.randperm(T * B, generator=learner._generator)[:2]
    [(states, _, starts_continue)] = dreamt
    expected = posterior.states.flatten(0, 1)[places].repeat_interleave(4, 0)
    torch.testing.assert_close(states[0], expected)
    goes_on = ~batch["is_terminated"].flatten()[places].repeat_interleave(4)
    assert torch.equal(starts_continue, goes_on)


def test_one_dream_in_four_is_cloned():
    assert rehearsal.BEST_IN == 4


def test_dreams_that_all_end_at_once_teach_nothing():
    learner = make_learner(rehearsal_interval=1)
    batch = {k: learner._to_device(v) for k, v in next(random_batches()).items()}
    batch["is_terminated"][:] = True
    before = weights_of(learner)
    metrics = learner.rehearse(batch)
    assert changed_parts(learner, before) == set()
    assert metrics["rehearsal_cloned"] == 0.0


@pytest.mark.parametrize("interleaved", [True, False])
def test_rehearsal_follows_every_so_many_actor_critic_updates(interleaved):
    settings = {"interleaved": interleaved, "world_model_updates": 3}
    settings |= {"actor_critic_updates": 4, "rehearsal_interval": 2}
    learner = make_learner(**settings)
    assert learner.config.rehearsed_minibatches() == (2, 4, 6)
    rehearsed = random_batches(5)
    seen = []
    counted = (seen.append(1) or batch for batch in rehearsed)
    metrics = learner.learn_epoch(0, random_batches(), rehearsed=counted)
    assert len(seen) == 2
    assert {"rehearsal_loss", "rehearsal_gain", "rehearsal_grad_norm"} <= set(metrics)
    assert make_learner().config.rehearsed_minibatches().count == 0


def test_a_restored_learner_goes_on_rehearsing_bit_for_bit():
    one, other = (make_learner(rehearsal_interval=1) for _ in range(2))
    one.learn_epoch(0, random_batches(0), rehearsed=random_batches(5))
    other.set_state(one.get_state())
    for learner in (one, other):
        learner.learn_epoch(1, random_batches(1), rehearsed=random_batches(6))
    assert_same_weights(one, other)
    without = make_learner()
    without.set_state(one.get_state())
    assert_same_weights(one, without)
