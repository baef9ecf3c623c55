import math

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from rllib_arrow.algorithms.dv3 import losses
from rllib_arrow.models.distributions import BINS, unimix_probs


def random_probs(seed: int, *shape: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return unimix_probs(torch.randn(shape, generator=generator) * 3)


def brute_force_returns(rewards, discounts, values, gae_lambda):
    """Sums every n-step return with its weight, instead of recurring."""
    horizon = len(rewards)
    returns = np.zeros(horizon)
    for t in range(horizon):
        n_step = []
        for end in range(t + 1, horizon + 1):
            total, product = 0.0, 1.0
            for k in range(t, end):
                total += product * rewards[k]
                product *= discounts[k]
            n_step.append(total + product * values[end])
        weights = [
            (1 - gae_lambda) * gae_lambda ** (n - 1) for n in range(1, len(n_step))
        ]
        weights.append(1.0 - sum(weights))
        returns[t] = np.dot(weights, n_step)
    return returns


@settings(max_examples=50, deadline=None)
@given(st.integers(0, 10_000), st.integers(1, 12), st.floats(0.0, 1.0))
def test_lambda_returns_equal_the_weighted_sum_of_n_step_returns(
    seed, horizon, gae_lambda
):
    rng = np.random.default_rng(seed)
    rewards = rng.normal(size=(horizon, 3))
    discounts = 0.997 * rng.random((horizon, 3))
    values = rng.normal(size=(horizon + 1, 3)) * 5
    found = losses.lambda_returns(
        *(torch.tensor(x) for x in (rewards, discounts, values)), gae_lambda
    )
    for n in range(3):
        expected = brute_force_returns(
            rewards[:, n], discounts[:, n], values[:, n], gae_lambda
        )
        np.testing.assert_allclose(found[:, n], expected, rtol=1e-9, atol=1e-9)


def test_a_terminal_state_is_not_bootstrapped_and_a_truncated_one_is():
    rewards, values = torch.tensor([[1.0, 1.0]]), torch.tensor([[0.0] * 2, [10.0] * 2])
    discounts = torch.tensor([[0.0, 0.5]])
    found = losses.lambda_returns(rewards, discounts, values, 0.95)
    assert found.tolist() == [[1.0, 6.0]]


def test_dream_weights_are_products_of_the_discounts_before():
    discounts = torch.tensor([[0.5, 0.5], [0.2, 0.2], [0.9, 0.9]])
    found = losses.dream_weights(discounts, torch.tensor([True, False]))
    torch.testing.assert_close(
        found, torch.tensor([[1.0, 0.0], [0.5, 0.0], [0.1, 0.0]])
    )


def test_kl_losses_are_balanced_and_equal_the_closed_form():
    posterior = torch.tensor([[[[0.5, 0.5], [0.9, 0.1]]]]).requires_grad_()
    prior = torch.tensor([[[[0.25, 0.75], [0.5, 0.5]]]]).requires_grad_()
    first = 0.5 * math.log(2.0) + 0.5 * math.log(2.0 / 3.0)
    second = 0.9 * math.log(1.8) + 0.1 * math.log(0.2)
    dynamics, representation, kl = losses.kl_losses(posterior, prior, free_bits=0.0)
    for value in (dynamics, representation, kl):
        assert value.item() == pytest.approx(first + second, rel=1e-5)
    dynamics.backward(retain_graph=True)
    assert posterior.grad is None
    torch.testing.assert_close(prior.grad, -(posterior / prior).detach())
    prior.grad = None
    representation.backward()
    assert prior.grad is None
    torch.testing.assert_close(posterior.grad, (posterior / prior).log().detach() + 1.0)


def test_kl_losses_agree_with_torch_distributions():
    posterior, prior = random_probs(0, 6, 5, 4, 3), random_probs(1, 6, 5, 4, 3)
    peers = [torch.distributions.Categorical(probs=x) for x in (posterior, prior)]
    per_row = torch.distributions.kl_divergence(*peers).sum(-1)
    dynamics, representation, kl = losses.kl_losses(posterior, prior, free_bits=2.0)
    expected = per_row.clamp(min=2.0).mean()
    torch.testing.assert_close(dynamics, expected)
    torch.testing.assert_close(representation, expected)
    torch.testing.assert_close(kl, per_row.mean())


def test_free_bits_stop_the_gradient_of_rows_below_them():
    near = torch.tensor([0.5, 0.5]).repeat(1, 2, 1, 1)
    far = torch.tensor([[0.01, 0.99], [0.45, 0.55]]).view(1, 2, 1, 2).requires_grad_()
    dynamics, _, _ = losses.kl_losses(near, far, free_bits=1.0)
    dynamics.backward()
    assert far.grad[0, 0].abs().sum() > 0
    assert torch.equal(far.grad[0, 1], torch.zeros(1, 2))


def test_image_loss_sums_over_a_frame_and_averages_over_frames():
    images = torch.zeros(2, 3, 4, 4)
    reconstructed = torch.stack([torch.full((3, 4, 4), 0.5), torch.zeros(3, 4, 4)])
    assert losses.image_loss(reconstructed, images).item() == 48 * 0.25 / 2


def test_reward_loss_starts_at_the_log_of_the_number_of_bins():
    loss = losses.reward_loss(torch.zeros(7, BINS), torch.linspace(-3, 3, 7))
    assert loss.item() == pytest.approx(math.log(BINS), rel=1e-6)


def test_continue_loss_is_the_negative_log_likelihood():
    logits = torch.tensor([0.3, -1.2])
    loss = losses.continue_loss(logits, torch.tensor([False, True]))
    goes_on = 1 / (1 + math.exp(-0.3))
    stops = 1 - 1 / (1 + math.exp(1.2))
    expected = -(math.log(goes_on) + math.log(stops)) / 2
    assert loss.item() == pytest.approx(expected, rel=1e-6)


def test_actor_loss_agrees_with_torch_distributions():
    probs = random_probs(2, 4, 3, 5)
    generator = torch.Generator().manual_seed(3)
    actions = torch.randint(5, (4, 3), generator=generator)
    advantages = torch.randn(4, 3, generator=generator)
    weights = torch.rand(4, 3, generator=generator)
    peer = torch.distributions.Categorical(probs=probs)
    terms = peer.log_prob(actions) * advantages + 0.01 * peer.entropy()
    loss, entropy = losses.actor_loss(probs, actions, advantages, weights, 0.01)
    torch.testing.assert_close(loss, -(weights * terms).mean())
    torch.testing.assert_close(entropy, peer.entropy().mean())


def test_actor_gradient_is_the_policy_gradient():
    """On softmax logits: advantage times (probability minus indicator)."""
    logits = torch.tensor([[[0.2, -0.4, 1.0]]], requires_grad=True)
    probs = torch.softmax(logits, -1)
    one = torch.ones(1, 1)
    loss, _ = losses.actor_loss(probs, torch.tensor([[1]]), 2.0 * one, one, 0.0)
    loss.backward()
    indicator = torch.tensor([0.0, 1.0, 0.0])
    torch.testing.assert_close(logits.grad[0, 0], 2.0 * (probs[0, 0] - indicator))


def test_critic_loss_adds_the_pull_of_the_slow_critic_with_its_scale():
    generator = torch.Generator().manual_seed(4)
    logits = torch.randn(2, 3, BINS, generator=generator)
    returns, slow = torch.randn(2, 2, 3, generator=generator) * 4
    weights = torch.rand(2, 3, generator=generator)

    def cross_entropy(values):
        bins = np.linspace(-20, 20, BINS)
        log_probs = torch.log_softmax(logits, -1).double().numpy()
        out = np.zeros((2, 3))
        for index in np.ndindex(2, 3):
            value = float(values[index])
            x = math.copysign(math.log1p(abs(value)), value)
            # Linear interpolation of the log-probabilities is what two-hot means.
            out[index] = -np.interp(x, bins, log_probs[index])
        return out

    expected = weights.numpy() * (cross_entropy(returns) + 0.5 * cross_entropy(slow))
    found = losses.critic_loss(logits, returns, slow, weights, 0.5)
    assert found.item() == pytest.approx(expected.mean(), rel=1e-5)
