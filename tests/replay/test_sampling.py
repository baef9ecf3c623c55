import json

import numpy as np
import pytest
from scipy.stats import chisquare

from rllib_arrow.replay.sampling import Curious, Uniform

LEVEL = 0.001


def test_curious_priorities_are_those_of_the_paper():
    rule = Curious()
    rule.visit([7] * 20 + [8, 8])
    rule.learn({7: 15.99, 8: 3.99})
    # 1e4 * 0.7^20 = 7.9792; 16^0.7 = 6.9644; 1e4 * 0.7^2 = 4900; 4^0.7 = 2.6390
    found = rule.priorities([7, 8])
    assert found == pytest.approx([14.9436, 4902.6390], abs=1e-4)
    # Not drawn yet: 1e4 and the average loss 9.99, 10^0.7 = 5.0119.
    assert rule.priorities([7, 8, 9])[2] == pytest.approx(10005.0119, abs=1e-4)


def test_chunks_are_drawn_in_proportion_to_their_priorities():
    rule = Curious()
    rule.visit([3] * 25 + [4] * 22 + [5] * 40)
    rule.learn({3: 0.5, 4: 2.0, 5: 20.0})
    serials = [5, 3, 4]
    chosen = rule.choose(serials, 20000, np.random.default_rng(0))
    expected = rule.priorities(serials) / rule.priorities(serials).sum() * 20000
    assert chisquare(np.bincount(chosen, minlength=3), expected).pvalue > LEVEL
    uniform = Uniform().choose(serials, 20000, np.random.default_rng(0))
    assert chisquare(np.bincount(uniform, minlength=3), expected).pvalue < LEVEL


def test_a_chunk_that_left_is_new_when_its_number_comes_again():
    rule = Curious()
    rule.visit([1, 1, 2])
    rule.learn({1: 5.0, 2: 5.0})
    rule.forget(1)
    rule.forget(99)
    fresh = Curious()
    fresh.visit([2])
    fresh.learn({2: 5.0})
    assert rule.get_state() == fresh.get_state()


def test_it_goes_on_from_its_state_through_json():
    one, other = Curious(), Curious()
    one.visit([4, 4, 6])
    one.learn({4: 0.1, 6: 1 / 3})
    other.set_state(json.loads(json.dumps(one.get_state())))
    np.testing.assert_array_equal(
        one.priorities([4, 5, 6]), other.priorities([4, 5, 6])
    )


def test_uniform_draws_are_the_generators_integers():
    chosen = Uniform().choose([9, 8, 7], 5, np.random.default_rng(1))
    expected = np.random.default_rng(1).integers(3, size=5)
    np.testing.assert_array_equal(chosen, expected)
