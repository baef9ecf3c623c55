"""The losses against loops over plain numbers."""

import math

import numpy as np
import pytest
import torch

from rllib_arrow.algorithms.tes_sac import losses

B, A, GAMMA, ALPHA = 7, 4, 0.9, 0.3


@pytest.fixture
def numbers():
    rng = np.random.default_rng(3)
    logits, next_logits = rng.normal(size=(2, B, A)) * 2
    return {
        "probs": np.exp(logits) / np.exp(logits).sum(1, keepdims=True),
        "next_probs": np.exp(next_logits) / np.exp(next_logits).sum(1, keepdims=True),
        "q": rng.normal(size=(B, A)) * 2,
        "next_q": rng.normal(size=(B, A)),
        "actions": rng.integers(A, size=B),
        "rewards": rng.normal(size=B),
        "terminated": np.array([0.0, 0, 1, 0, 1, 0, 0]),
        "weights": np.array([1.0, 0, 1, 1, 1, 0, 1]),
    }


def targets_by_hand(n):
    targets = []
    for i in range(B):
        value = 0.0
        for p, q in zip(n["next_probs"][i], n["next_q"][i], strict=True):
            value += p * (q - ALPHA * math.log(p))
        if n["terminated"][i]:
            value = 0.0
        targets.append(n["rewards"][i] + GAMMA * value)
    return targets


def tensors(n):
    return {key: torch.tensor(value) for key, value in n.items()}


def test_q_targets_are_rewards_plus_discounted_soft_values_unless_terminated(numbers):
    n = tensors(numbers)
    values = losses.soft_values(
        n["next_q"], n["next_probs"], n["next_probs"].log(), torch.tensor(ALPHA)
    )
    targets = losses.q_targets(n["rewards"], n["terminated"], values, GAMMA)
    np.testing.assert_allclose(targets, targets_by_hand(numbers))
    assert targets[2] == numbers["rewards"][2]


def test_critic_loss_is_the_mean_huber_error_of_the_transitions(numbers):
    targets = targets_by_hand(numbers)
    errors = []
    for i in range(B):
        error = abs(numbers["q"][i][numbers["actions"][i]] - targets[i])
        huber = 0.5 * error**2 if error < 1 else error - 0.5
        if numbers["weights"][i]:
            errors.append(huber)
    n = tensors(numbers)
    loss = losses.critic_loss(n["q"], n["actions"], torch.tensor(targets), n["weights"])
    assert len(errors) == 5
    assert loss.item() == pytest.approx(sum(errors) / 5)


def test_policy_loss_is_minus_the_mean_soft_value_of_the_transitions(numbers):
    values = [
        sum(
            p * (q - ALPHA * math.log(p))
            for p, q in zip(numbers["probs"][i], numbers["q"][i], strict=True)
        )
        for i in range(B)
        if numbers["weights"][i]
    ]
    n = tensors(numbers)
    loss = losses.policy_loss(
        n["probs"], n["probs"].log(), n["q"], torch.tensor(ALPHA), n["weights"]
    )
    assert loss.item() == pytest.approx(-sum(values) / 5)


def test_entropy_is_the_mean_over_the_transitions(numbers):
    entropies = [
        -sum(p * math.log(p) for p in numbers["probs"][i])
        for i in range(B)
        if numbers["weights"][i]
    ]
    n = tensors(numbers)
    entropy = losses.mean_entropy(n["probs"], n["probs"].log(), n["weights"])
    assert entropy.item() == pytest.approx(sum(entropies) / 5)


@pytest.mark.parametrize(("entropy", "sign"), [(1.5, 1), (0.5, -1)])
def test_alpha_falls_above_the_target_entropy_and_rises_below_it(entropy, sign):
    log_alpha = torch.zeros(1, requires_grad=True)
    loss = losses.alpha_loss(log_alpha, torch.tensor(entropy), torch.tensor(1.0))
    loss.backward()
    # Descent goes against the gradient.
    assert log_alpha.grad.item() == pytest.approx(sign * 0.5)


def test_a_policy_that_is_certain_has_finite_losses_and_gradients():
    logits = torch.tensor([[0.0, -1000.0, 500.0]], requires_grad=True)
    probs, log_probs = losses.log_policy(logits)
    q, weights = torch.ones(1, 3), torch.ones(1)
    loss = losses.policy_loss(probs, log_probs, q, torch.tensor(0.2), weights)
    loss.backward()
    assert torch.isfinite(loss) and torch.isfinite(logits.grad).all()
    assert losses.mean_entropy(probs, log_probs, weights).item() == 0.0


def test_logits_that_lie_too_far_apart_are_scaled_and_others_left_alone():
    logits = torch.tensor([[1.0, -2.0, 4.0], [30.0, -10.0, 0.0], [5.0, 5.0, 5.0]])
    torch.testing.assert_close(
        losses.within_gap(logits, 8.0),
        torch.tensor([[1.0, -2.0, 4.0], [6.0, -2.0, 0.0], [5.0, 5.0, 5.0]]),
    )
    assert losses.within_gap(logits, None) is logits


def test_a_certain_policy_learns_of_a_better_action_only_within_a_logit_gap():
    q, alpha = torch.tensor([[5.0, 0.0]]), torch.tensor(0.5)

    def gradient(max_gap):
        logits = torch.tensor([[-140.0, 0.0]], requires_grad=True)
        policy = losses.log_policy(losses.within_gap(logits, max_gap))
        losses.policy_loss(*policy, q, alpha, torch.ones(1)).backward()
        return logits.grad[0, 0].item()

    assert gradient(None) == 0.0
    # The logits are -7 and 0. The first action's probability p changes the soft value
    # by the difference in Q and half the difference in log p, and the first logit
    # changes p by p (1 - p), times the scale 7 / 140.
    p = math.exp(-7) / (1 + math.exp(-7))
    assert gradient(7.0) == pytest.approx(-p * (1 - p) * (5 + 0.5 * 7) / 20)


def test_logits_that_are_scaled_down_cost_the_square_of_their_excess():
    logits = torch.tensor([[0.0, 10.0], [0.0, 4.0], [0.0, 99.0]])
    weights = torch.tensor([1.0, 1.0, 0.0])
    assert losses.gap_cost(logits, 7.0, weights).item() == pytest.approx(0.01 * 9 / 2)
    assert losses.gap_cost(logits, None, weights).item() == 0.0


def test_a_minibatch_without_any_transition_has_no_loss():
    values, weights = torch.tensor([3.0, 4.0]), torch.zeros(2)
    assert losses.weighted_mean(values, weights).item() == 0.0
