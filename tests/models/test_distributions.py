import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rllib_arrow.models.distributions import (
    BINS,
    entropy,
    kl_divergence,
    sample_one_hot,
    symexp,
    symlog,
    two_hot_bins,
    two_hot_loss,
    two_hot_mean,
    unimix_probs,
)


def test_symlog_matches_values_worked_by_hand():
    x = torch.tensor([0.0, math.e - 1.0, 1.0 - math.e, 99.0])
    expected = torch.tensor([0.0, 1.0, -1.0, math.log(100.0)])
    torch.testing.assert_close(symlog(x), expected)
    torch.testing.assert_close(symexp(expected), x)


def test_unimix_gives_every_class_one_percent_of_a_uniform_share():
    probs = unimix_probs(torch.tensor([100.0, 0.0, 0.0, 0.0]))
    torch.testing.assert_close(probs, torch.tensor([0.9925, 0.0025, 0.0025, 0.0025]))


def test_kl_and_entropy_agree_with_closed_forms():
    p, q = torch.tensor([0.5, 0.5]), torch.tensor([0.25, 0.75])
    by_hand = 0.5 * math.log(2.0) + 0.5 * math.log(2.0 / 3.0)
    assert kl_divergence(p, q).item() == pytest.approx(by_hand, rel=1e-6)
    assert entropy(p).item() == pytest.approx(math.log(2.0), rel=1e-6)


def test_kl_and_entropy_agree_with_torch_distributions():
    generator = torch.Generator().manual_seed(0)
    p = unimix_probs(torch.randn(50, 7, generator=generator))
    q = unimix_probs(torch.randn(50, 7, generator=generator))
    peer_p, peer_q = (torch.distributions.Categorical(probs=x) for x in (p, q))
    expected = torch.distributions.kl_divergence(peer_p, peer_q)
    torch.testing.assert_close(kl_divergence(p, q), expected)
    torch.testing.assert_close(entropy(p), peer_p.entropy())


def test_draws_are_one_hot_and_as_frequent_as_their_probabilities():
    generator = torch.Generator().manual_seed(1)
    probs = torch.tensor([0.1, 0.2, 0.0, 0.7])
    uniform = torch.rand(200_000, generator=generator)
    drawn = sample_one_hot(probs.expand(200_000, 4), uniform)
    assert torch.equal(drawn.sum(-1), torch.ones(200_000))
    # Four standard errors of a share near one half.
    np.testing.assert_allclose(drawn.mean(0), probs, atol=4 * 0.5 / 200_000**0.5)


def test_a_draw_inverts_the_cumulative_distribution():
    probs = torch.tensor([[0.25, 0.5, 0.25]]).expand(6, 3)
    uniform = torch.tensor([0.0, 0.2, 0.25, 0.7, 0.75, 0.99])
    drawn = sample_one_hot(probs, uniform).argmax(-1)
    assert drawn.tolist() == [0, 0, 1, 1, 2, 2]


def test_the_largest_noise_still_draws_a_class_whatever_the_rounding():
    largest = 1.0 - 2.0**-24
    generator = torch.Generator().manual_seed(2)
    probs = unimix_probs(torch.randn(100_000, 32, generator=generator) * 5)
    drawn = sample_one_hot(probs, torch.full((100_000,), largest))
    assert torch.equal(drawn.sum(-1), torch.ones(100_000))


def test_straight_through_gradient_is_that_of_the_probabilities():
    logits = torch.randn(5, 6, generator=torch.Generator().manual_seed(3))
    uniform = torch.rand(5, generator=torch.Generator().manual_seed(4))
    weights = torch.randn(5, 6, generator=torch.Generator().manual_seed(5))
    ours, peer = logits.clone().requires_grad_(), logits.clone().requires_grad_()
    (sample_one_hot(unimix_probs(ours), uniform) * weights).sum().backward()
    (unimix_probs(peer) * weights).sum().backward()
    torch.testing.assert_close(ours.grad, peer.grad)
    assert ours.grad.abs().sum() > 0


def dense_two_hot(value: float) -> np.ndarray:
    """Encodes by looking for the neighbouring bins, in float64."""
    bins = np.linspace(-20.0, 20.0, BINS)
    x = np.clip(np.sign(value) * np.log1p(abs(value)), -20.0, 20.0)
    target = np.zeros(BINS)
    above = min(max(int(np.searchsorted(bins, x, side="right")), 1), BINS - 1)
    share = (x - bins[above - 1]) / (bins[above] - bins[above - 1])
    target[above - 1], target[above] = 1.0 - share, share
    return target


@given(st.floats(-1e9, 1e9))
def test_two_hot_loss_equals_the_cross_entropy_with_a_dense_encoding(value):
    logits = torch.randn(BINS, generator=torch.Generator().manual_seed(6))
    log_probs = torch.log_softmax(logits.double(), -1).numpy()
    expected = -(dense_two_hot(value) * log_probs).sum()
    loss = two_hot_loss(logits, torch.tensor(value, dtype=torch.float32))
    assert loss.item() == pytest.approx(expected, rel=1e-3, abs=1e-3)


@pytest.mark.parametrize("value", [0.0, 1.0, -1.0, 0.013, -57.3, 1234.5, 4.0e7])
def test_two_hot_round_trip_returns_the_value(value):
    target = torch.tensor(dense_two_hot(value), dtype=torch.float32)
    decoded = two_hot_mean(target.clamp(min=1e-30).log())
    assert decoded.item() == pytest.approx(value, rel=1e-4, abs=1e-5)


def test_learning_by_two_hot_loss_finds_the_mean_in_symlog_space():
    targets = torch.tensor([0.0, 3.0])
    logits = torch.zeros(BINS, requires_grad=True)
    optimizer = torch.optim.Adam([logits], lr=0.3)
    for _ in range(300):
        optimizer.zero_grad()
        two_hot_loss(logits.expand(2, BINS), targets).mean().backward()
        optimizer.step()
    expected = math.expm1(math.log1p(3.0) / 2)
    assert two_hot_mean(logits).item() == pytest.approx(expected, rel=0.02)


def test_bins_are_symmetric_with_zero_in_the_middle():
    bins = two_hot_bins()
    torch.testing.assert_close(bins, -bins.flip(0))
    assert abs(bins[BINS // 2].item()) < 1e-6
    assert two_hot_mean(torch.zeros(BINS)).item() == pytest.approx(0.0, abs=1e-4)
