import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import chi2, chisquare

from rllib_arrow.replay.retention import Fifo, Reservoir, ltdm_capacity

LEVEL = 0.001  # how often the right rule would fail a uniformity test by chance


class AlwaysInsert(Reservoir):
    """The tempting wrong rule: take every chunk in, evict a random one."""

    def slot_for(self, chunk):
        if len(self.keys) < self.capacity:
            return len(self.keys)
        return int(self._next_key * self.capacity)


def keep(rule, offered):
    """Returns which of the chunks 0, 1, ... are left after all were offered."""
    slots = {}
    for chunk in range(offered):
        slot = rule.slot_for(None)
        if slot is not None:
            slots[slot] = chunk
        rule.advance(None)
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
        assert rule.slot_for(None) == rule.slot_for(None)
        before = rule.get_state()
        rule.slot_for(None)
        assert rule.get_state() == before
        rule.advance(None)


class TakesAnything(Reservoir):
    """The tempting wrong rule for growing: whatever finds a free slot is let in."""

    def _drop(self, key):
        pass


def keep_resizing(rule, plan):
    """Returns which chunks are left; a plan names the capacity for each chunk."""
    held = []
    for chunk, capacity in enumerate(plan):
        if capacity != rule.capacity:
            held = [held[slot] for slot in rule.resize(capacity)]
        slot = rule.slot_for(None)
        if slot is not None:
            held[slot : slot + 1] = [chunk]
        rule.advance(None)
        assert len(held) <= capacity
    return held


PLANS = [
    [1] * 10 + [10] * 10,
    [8] * 20 + [2] * 5 + [12] * 25,
    [3, 9, 1, 4, 2, 8, 5, 5, 6, 2] * 4,
]


def drawn_p_value(rule, plan, runs):
    """Tests that one chunk, drawn from those held, is any of all equally often."""
    rng = np.random.default_rng(0)
    counts = np.zeros(len(plan))
    for seed in range(runs):
        held = keep_resizing(rule(plan[0], np.random.default_rng(seed)), plan)
        counts[rng.choice(held)] += 1
    return chisquare(counts).pvalue


@pytest.mark.parametrize("plan", PLANS)
def test_a_draw_is_uniform_over_the_past_however_the_reservoir_grew_and_shrank(plan):
    assert drawn_p_value(Reservoir, plan, runs=2000) > LEVEL


def test_a_draw_is_uniform_after_random_growing_and_shrinking():
    for seed in range(3):
        rng = np.random.default_rng(seed)
        plan = np.repeat(rng.integers(1, 12, size=8), 6).tolist()
        assert drawn_p_value(Reservoir, plan, runs=1500) > LEVEL


@pytest.mark.parametrize("plan", PLANS)
def test_letting_anything_into_free_slots_fails_the_same_test(plan):
    assert drawn_p_value(TakesAnything, plan, runs=2000) < LEVEL


plans = st.lists(st.integers(0, 8), min_size=1, max_size=40)


@given(plan=plans, seed=st.integers(0))
@settings(max_examples=100, deadline=None)
def test_a_reservoir_holds_all_keys_above_the_largest_ever_dropped(plan, seed):
    rule = Reservoir(plan[0], np.random.default_rng(seed))
    held = keep_resizing(rule, plan)
    keys = np.random.default_rng(seed).random(len(plan))
    dropped = max((keys[i] for i in range(len(plan)) if i not in held), default=0.0)
    assert rule.threshold == dropped
    assert sorted(held) == [i for i, key in enumerate(keys) if key > dropped]
    assert rule.keys == [keys[i] for i in held]


@given(plan=plans)
@settings(max_examples=100, deadline=None)
def test_a_resized_fifo_goes_on_from_the_newest_it_had(plan):
    newest = []
    for chunk, capacity in enumerate(plan):
        newest = newest[max(0, len(newest) - capacity) :]
        newest = [*newest, chunk][-capacity:] if capacity else []
    assert sorted(keep_resizing(Fifo(plan[0]), plan)) == newest


@given(plan=plans, later=plans, seed=st.integers(0))
@settings(max_examples=50, deadline=None)
def test_a_rule_goes_on_from_its_state_through_json(plan, later, seed):
    for make in (Fifo, lambda n: Reservoir(n, np.random.default_rng(seed))):
        one, other = make(plan[0]), make(3)
        keep_resizing(one, plan)
        other.capacity = one.capacity
        other.set_state(json.loads(json.dumps(one.get_state())))
        for capacity in later:
            assert one.resize(capacity) == other.resize(capacity)
            assert one.slot_for(None) == other.slot_for(None)
            one.advance(None)
            other.advance(None)


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
