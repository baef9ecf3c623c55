"""Random streams: the same today as in every checkpoint ever made."""

import numpy as np
import pytest

from rllib_arrow.seeding import derive_rng, derive_seed


@pytest.mark.parametrize(
    ("keys", "seed"),
    [
        ((1,), 3717377837946358015),
        ((1, "env", 3), 8045210913938972744),
        ((123456789, "learner", 7, 1), 2713204869820517540),
    ],
)
def test_seeds_are_those_of_runs_long_ago(keys, seed):
    assert derive_seed(*keys) == seed


def test_every_key_counts():
    keys = [(1, "act"), (2, "act"), (1, "env"), (1, "act", 1), (1, "act", 2, 1)]
    assert len({derive_seed(*each) for each in keys}) == len(keys)
    assert derive_seed(1, "act", 0) == derive_seed(1, "act")  # as is documented
    one, other = (derive_rng(1, "act", epoch).random(4) for epoch in (0, 1))
    assert not np.array_equal(one, other)
