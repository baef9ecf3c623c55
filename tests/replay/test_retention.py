import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2

from rllib_arrow.replay.retention import Fifo, Reservoir, ltdm_capacity

LEVEL = 0.001  # how often the right rule would fail a uniformity test by chance


class AlwaysInsert(Reservoir):
    """The tempting wrong rule: take every chunk in, evict a random one."""

    def slot_for_next(self):
        if self.size < self.capacity:
            return self.size
        return int(self._next_key * self.capacity)


def keep(rule, offered):
    """Returns which of the chunks 0, 1, ... are left after all were offered."""
    slots = {}
    for chunk in range(offered):
        slot = rule.slot_for_next()
        if slot is not None:
            slots[slot] = chunk
        rule.advance()
    return [slots[slot] for slot in sorted(slots)]


def uniformity_p_value(rule, capacity, offered, runs):
    """Tests that all chunks are kept equally often, `capacity` of them per run.

    Counts of draws without replacement have variance n p (1 - p) and sum to a
    constant, hence the factor before the usual statistic.
    """
    counts = np.zeros(offered)
    for seed in range(runs):
        counts[keep(rule(capacity, np.random.default_rng(seed)), offered)] += 1
    p = capacity / offered
    assert counts.sum() == runs * capacity
    squares = ((counts - runs * p) ** 2).sum() / (runs * p * (1 - p))
    return chi2.sf(squares * (offered - 1) / offered, offered - 1)


@pytest.mark.parametrize(("capacity", "offered"), [(8, 40), (1, 10), (15, 16)])
def test_reservoir_keeps_early_and_late_chunks_equally_often(capacity, offered):
    assert uniformity_p_value(Reservoir, capacity, offered, runs=1500) > LEVEL


@pytest.mark.parametrize(("capacity", "offered"), [(8, 40), (1, 10), (15, 16)])
def test_always_inserting_fails_the_same_uniformity_test(capacity, offered):
    assert uniformity_p_value(AlwaysInsert, capacity, offered, runs=1500) < LEVEL


@given(capacity=st.integers(0, 12), offered=st.integers(0, 60), seed=st.integers(0))
@settings(max_examples=100, deadline=None)
def test_reservoir_keeps_the_largest_keys(capacity, offered, seed):
    kept = keep(Reservoir(capacity, np.random.default_rng(seed)), offered)
    keys = np.random.default_rng(seed).random(offered)
    largest = sorted(range(offered), key=lambda chunk: -keys[chunk])[:capacity]
    assert sorted(kept) == sorted(largest)


@given(capacity=st.integers(0, 12), offered=st.integers(0, 60))
@settings(max_examples=100, deadline=None)
def test_fifo_keeps_the_newest(capacity, offered):
    kept = keep(Fifo(capacity), offered)
    assert sorted(kept) == list(range(offered))[max(0, offered - capacity) :]


@pytest.mark.parametrize(
    "make", [Fifo, lambda n: Reservoir(n, np.random.default_rng())]
)
def test_asking_for_the_slot_changes_nothing(make):
    rule = make(3)
    for _ in range(20):
        assert rule.slot_for_next() == rule.slot_for_next()
        before = rule.get_state()
        rule.slot_for_next()
        assert rule.get_state() == before
        rule.advance()


@pytest.mark.parametrize(
    ("capacity", "fraction", "expected"),
    [
        (1024, 0.5, 512),
        (1024, 0.25, 256),
        (1024, 0.75, 768),
        (1024, 0, 0),
        (1024, 1, 1024),
        (5, 0.5, 3),
        (2, 0.01, 1),
        (2, 0.99, 1),
        (1, 1.0, 1),
    ],
)
def test_the_long_term_share_is_rounded_half_up(capacity, fraction, expected):
    assert ltdm_capacity(capacity, fraction) == expected


def test_one_chunk_cannot_be_split():
    with pytest.raises(ValueError, match=r"cannot be split by ltdm_fraction \(0.5\)"):
        ltdm_capacity(1, 0.5)
