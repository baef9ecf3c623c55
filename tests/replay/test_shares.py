import json

import pytest

from rllib_arrow.replay.shares import (
    AfterChange,
    Balanced,
    Constant,
    EpochLosses,
    OnceAfterChange,
)

BOUNDS = [0.2, 0.8]


def fresh(loss):
    return EpochLosses(fresh=loss, fifo=None, ltdm=None)


def both(fifo, ltdm):
    return EpochLosses(fresh=None, fifo=fifo, ltdm=ltdm)


def test_a_constant_share_never_moves():
    share = Constant(0.3, BOUNDS)
    for loss in (1.0, 100.0):
        share.update(EpochLosses(loss, loss, 1.0))
    assert share.value == 0.3


def test_a_jump_of_the_fresh_loss_lowers_the_share_and_time_raises_it():
    share = AfterChange(0.5, BOUNDS)
    values = []
    # Means before each: -, 10, 10, 11 (so 16.6 is a jump), 16.6, 15.8
    for loss in (10.0, 10.0, 12.0, 16.6, 15.0, 15.0):
        share.update(fresh(loss))
        values.append(share.value)
    # 0.5 + 0.1 * 0.3 = 0.53; 0.557; 0.5813; low; 0.2 + 0.1 * 0.6 = 0.26; 0.314
    assert values == pytest.approx([0.53, 0.557, 0.5813, 0.2, 0.26, 0.314])


def test_a_loss_just_below_the_jump_is_no_change():
    share = AfterChange(0.5, BOUNDS)
    share.update(fresh(10.0))
    share.update(fresh(15.0))
    assert share.value == pytest.approx(0.557)


def test_without_fresh_chunks_time_goes_on():
    share = AfterChange(0.5, BOUNDS)
    share.update(fresh(None))
    assert share.value == pytest.approx(0.53)


def test_only_the_epoch_after_a_jump_has_the_upper_bound():
    share = OnceAfterChange(0.0, (0.0, 1.0))
    values = []
    # Means before each: -, 10, 11, 17 (which the jump set), 16, 30
    for loss in (10.0, 12.0, 17.0, 15.0, 30.0, 31.0):
        share.update(fresh(loss))
        values.append(share.value)
    share.update(fresh(None))
    assert [*values, share.value] == [0, 0, 1, 0, 1, 0, 0]


def test_what_is_predicted_worse_than_it_used_to_be_is_practised_more():
    share = Balanced(0.5, BOUNDS)
    share.update(both(4.0, 6.0))  # sets the means
    assert share.value == pytest.approx(0.5)
    share.update(both(4.0, 12.0))  # twice its mean against once: odds 2 to 1
    assert share.value == pytest.approx(2 / 3)
    # Means 4 and 7.2: 3 times against once divides the odds by 3.
    share.update(both(12.0, 7.2))
    assert share.value == pytest.approx(0.4)


def test_the_share_stays_within_its_bounds():
    share = Balanced(0.5, BOUNDS)
    share.update(both(1.0, 1.0))
    share.update(both(1.0, 1000.0))
    assert share.value == 0.8
    share.update(both(1e9, 1.0))
    assert share.value == 0.2
    share.update(both(None, 1.0))
    assert share.value == 0.2
    assert AfterChange(0.9, BOUNDS).value == 0.8


@pytest.mark.parametrize("kind", [AfterChange, Balanced, OnceAfterChange])
def test_it_goes_on_from_its_state_through_json(kind):
    one, other = kind(0.5, BOUNDS), kind(0.3, BOUNDS)
    for losses in (EpochLosses(3.0, 4.0, 5.0), EpochLosses(3.1, 5.0, 4.5)):
        one.update(losses)
    other.set_state(json.loads(json.dumps(one.get_state())))
    for losses in (EpochLosses(9.0, 7.0, 4.0), EpochLosses(8.0, 6.0, 6.0)):
        one.update(losses)
        other.update(losses)
        assert one.get_state() == other.get_state()
