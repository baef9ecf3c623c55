import logging

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ray.rllib.utils.replay_buffers.base import ReplayBufferInterface
from scipy.stats import chisquare

from rllib_arrow.replay import AugmentedReplay
from tests.replay.reference import FRAME, PlainReplay, assert_same_batch, make_chunk

LEVEL = 0.001  # of every statistical test here
FRACTIONS = (0, 0.25, 0.5, 0.75, 1)


def make(capacity=6, length=8, fraction=0.5, seed=0, **settings):
    return AugmentedReplay(capacity, length, fraction, seed, num_threads=1, **settings)


def held(replay, buffer):
    return replay.get_state()["meta"]["slots"][buffer]


@given(
    capacity=st.integers(2, 9),
    chunk_length=st.integers(1, 20),
    fraction=st.sampled_from(FRACTIONS),
    probability=st.sampled_from([0.0, 0.3, 0.5, 1.0]),
    seed=st.integers(0, 2**40),
    added=st.integers(1, 30),
    data=st.data(),
)
@settings(max_examples=60, deadline=None)
def test_it_does_what_the_plain_version_does(
    capacity, chunk_length, fraction, probability, seed, added, data
):
    ours = AugmentedReplay(
        capacity, chunk_length, fraction, seed, ltdm_probability=probability
    )
    plain = PlainReplay(capacity, chunk_length, fraction, seed, probability)
    for serial in range(added):
        chunk = make_chunk(serial, chunk_length)
        ours.add(chunk)
        plain.add(chunk)
        assert held(ours, "fifo") == [entry[0] for entry in plain.fifo]
        assert held(ours, "ltdm") == [entry[0] for entry in plain.ltdm]
        stored = {entry[0] for entry in plain.fifo + plain.ltdm}
        assert len(ours) == len(stored)
        if data.draw(st.booleans()):
            length = data.draw(st.integers(1, chunk_length))
            assert_same_batch(ours.sample(3, length), plain.sample(3, length))


def test_it_is_an_rllib_replay_buffer():
    assert isinstance(make(), ReplayBufferInterface)


@pytest.mark.parametrize("fraction", FRACTIONS)
def test_without_a_split_there_is_one_buffer_and_otherwise_two(fraction):
    replay = make(capacity=8, fraction=fraction)
    for serial in range(20):
        replay.add(make_chunk(serial, 8))
    stats = replay.stats()
    assert stats["ltdm_chunks"] == 8 * fraction
    assert stats["fifo_chunks"] == 8 - 8 * fraction
    buffers = {replay.draw(2, 4).buffer for _ in range(60)}
    assert buffers == {0: {"fifo"}, 1: {"ltdm"}}.get(fraction, {"fifo", "ltdm"})


def test_sampling_does_not_change_what_is_kept():
    quiet, busy = make(), make()
    for serial in range(40):
        for replay in (quiet, busy):
            replay.add(make_chunk(serial, 8))
        busy.sample(2, 3)
    assert held(quiet, "ltdm") == held(busy, "ltdm")


def test_a_minibatch_comes_from_either_buffer_with_the_set_probability():
    replay = make(ltdm_probability=0.3)
    for serial in range(12):
        replay.add(make_chunk(serial, 8))
    draws = [replay.draw(1, 1).buffer == "ltdm" for _ in range(4000)]
    assert chisquare([sum(draws), 4000 - sum(draws)], [1200, 2800]).pvalue > LEVEL


def test_chunks_and_starts_are_uniform_up_to_the_chunk_end():
    replay = make(capacity=5, length=10, fraction=0)
    for serial in range(7):
        replay.add(make_chunk(serial, 10))
    counts = np.zeros((7, 10))
    for _ in range(400):
        draw = replay.draw(16, 4)
        serials = [record.serial for record in draw.records]
        np.add.at(counts, (serials, draw.starts), 1)
    assert counts[:2].sum() == 0 and counts[:, 7:].sum() == 0
    assert chisquare(counts[2:, :7].ravel()).pvalue > LEVEL


def test_a_sequence_never_crosses_the_end_of_its_chunk():
    replay = make(length=8)
    for serial in range(20):
        replay.add(make_chunk(serial, 8))
    for _ in range(50):
        actions = replay.sample(16, 5)["actions"]
        assert (np.diff(actions, axis=1) == 1).all()
        assert (actions // 1000 == actions[:, :1] // 1000).all()


def test_a_batch_has_the_promised_names_types_and_shapes():
    replay = make()
    replay.add(make_chunk(0, 8))
    batch = replay.sample(2, 5)
    assert {name: (str(a.dtype), a.shape) for name, a in batch.items()} == {
        "obs": ("uint8", (2, 5, *FRAME)),
        "actions": ("int64", (2, 5)),
        "rewards": ("float32", (2, 5)),
        "is_first": ("bool", (2, 5)),
        "is_terminated": ("bool", (2, 5)),
    }


def test_a_draw_can_be_gathered_in_parts_and_after_its_chunks_are_gone():
    replay = make(capacity=2)
    replay.add(make_chunk(0, 8))
    draw = replay.draw(6, 4)
    whole = replay.gather(draw)
    for serial in range(1, 12):
        replay.add(make_chunk(serial, 8))
    parts = [replay.gather(draw.part(start, start + 2)) for start in (0, 2, 4)]
    for name, array in whole.items():
        np.testing.assert_array_equal(
            array, np.concatenate([part[name] for part in parts])
        )


def test_a_chunk_held_by_both_buffers_is_stored_once():
    once, twice = make(fraction=0), make(fraction=0.5)
    for replay in (once, twice):
        replay.add(make_chunk(0, 8))
    stats = twice.stats()
    assert stats["bytes"] == once.stats()["bytes"]
    assert (stats["fifo_chunks"], stats["ltdm_chunks"]) == (1, 1)
    assert (stats["observations"], len(twice)) == (8, 1)


def test_bytes_is_the_sum_over_the_chunks_stored():
    replay = make()
    for serial in range(30):
        replay.add(make_chunk(serial, 8))
        records = replay.get_state()["records"]
        assert replay.stats()["bytes"] == sum(len(r.data) for r in records)
        assert replay.stats()["observations"] == 8 * len(records)


def test_stats_tell_tasks_and_ages_and_samples_do_not():
    replay = make(capacity=4)
    for serial in range(10):
        replay.add(make_chunk(serial, 8), task="early" if serial < 5 else "late")
    stats = replay.stats()
    assert stats["fifo_tasks"] == {"late": 2}
    assert stats["fifo_ages"] == {"min": 0, "median": 0.5, "max": 1}
    kept = held(replay, "ltdm")
    ages = sorted(9 - serial for serial in kept)
    assert stats["ltdm_ages"] == {
        "min": ages[0],
        "median": sum(ages) / 2,
        "max": ages[1],
    }
    assert sum(stats["ltdm_tasks"].values()) == 2
    assert stats["ltdm_tasks"].get("early", 0) == sum(serial < 5 for serial in kept)
    unlabelled = make(capacity=4)
    for serial in range(10):
        unlabelled.add(make_chunk(serial, 8))
    assert_same_batch(replay.sample(4, 4), unlabelled.sample(4, 4))


def test_a_chunk_beyond_max_bytes_is_refused_and_changes_nothing():
    free = make(capacity=4)
    for serial in range(3):
        free.add(make_chunk(serial, 8))
    limit = free.stats()["bytes"]
    capped = make(capacity=4, max_bytes=limit)
    for serial in range(3):
        capped.add(make_chunk(serial, 8))
    before = capped.get_state()
    bigger = make_chunk(3, 8)._replace(
        obs=np.random.default_rng(0).integers(0, 256, (8, *FRAME), np.uint8)
    )
    with pytest.raises(ValueError, match=f"beyond max_bytes={limit}; raise it"):
        capped.add(bigger)
    assert capped.get_state() == before


def test_what_leaves_counts_towards_max_bytes():
    """A full FIFO goes on for ever within the size it needs."""
    chunks = [make_chunk(serial, 8) for serial in range(40)]
    size = max(make_and_measure(chunk) for chunk in chunks)
    replay = make(capacity=3, fraction=0, max_bytes=3 * size)
    for chunk in chunks:
        replay.add(chunk)
        assert replay.stats()["bytes"] <= 3 * size


def make_and_measure(chunk):
    replay = make()
    replay.add(chunk)
    return replay.stats()["bytes"]


def test_an_estimate_for_the_full_buffer_is_logged_at_the_start(caplog):
    with caplog.at_level(logging.INFO):
        replay = make(capacity=100, max_bytes=10**4)
        replay.add(make_chunk(0, 8))
        replay.add(make_chunk(1, 8))
    (line,) = caplog.records
    assert "100 chunks" in line.message and "max_bytes=10000" in line.message
    assert line.levelno == logging.WARNING
    records = replay.get_state()["records"]
    mean = np.mean([len(record.data) for record in records])
    assert replay.stats()["estimated_full_bytes"] == round(100 * mean)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"rewards": np.full(8, np.nan, np.float32)}, r"rewards\[0\] is nan"),
        ({"rewards": np.full(8, np.inf, np.float32)}, "must be finite"),
        ({"rewards": np.zeros(8)}, "rewards is float64; it must be a float32"),
        ({"rewards": [0.0] * 8}, "rewards is list"),
        ({"obs": np.zeros((8, *FRAME), np.float32)}, "obs is float32"),
        ({"obs": np.zeros((8, 5, 4, 3), np.uint8)}, r"frames of shape \(5, 4, 3\)"),
        ({"obs": np.zeros((7, *FRAME), np.uint8)}, "exactly chunk_length=8 rows"),
        ({"actions": np.zeros((8, 1), np.int64)}, r"actions has shape \(8, 1\)"),
        ({"is_first": np.zeros(9, bool)}, r"is_first has shape \(9,\)"),
    ],
)
def test_an_unfit_chunk_is_refused_in_one_line(change, message):
    replay = make()
    replay.add(make_chunk(0, 8))
    with pytest.raises(ValueError, match=message) as error:
        replay.add(make_chunk(1, 8)._replace(**change))
    assert "\n" not in str(error.value)
    assert replay.stats()["chunks_added"] == 1


def test_sampling_too_early_or_too_much_is_a_clear_error():
    replay = make()
    with pytest.raises(ValueError, match="empty: add a chunk before sampling"):
        replay.sample(2, 4)
    replay.add(make_chunk(0, 8))
    with pytest.raises(ValueError, match=r"length \(9\) must be in \[1, 8\]"):
        replay.sample(2, 9)
    with pytest.raises(ValueError, match=r"batch_size \(0\)"):
        replay.sample(0, 4)


@pytest.mark.parametrize(
    "wrong",
    [
        {"capacity": 0},
        {"length": 0},
        {"fraction": 1.5},
        {"fraction": -0.1},
        {"ltdm_probability": 2},
        {"max_bytes": 0},
    ],
)
def test_impossible_settings_are_refused(wrong):
    with pytest.raises(ValueError, match=r"\((0|1.5|-0.1|2)\) must be"):
        make(**wrong)


def test_a_state_is_taken_over_and_another_capacity_refused():
    replay = make()
    for serial in range(9):
        replay.add(make_chunk(serial, 8))
    other = make(seed=5)
    other.set_state(replay.get_state())
    assert_same_batch(replay.sample(4, 4), other.sample(4, 4))
    with pytest.raises(ValueError, match="capacity_chunks is 6, this replay's is 7"):
        make(capacity=7).set_state(replay.get_state())


def test_two_threads_store_the_same_bytes_as_one():
    one = AugmentedReplay(4, 100, 0.5, 0, num_threads=1)
    two = AugmentedReplay(4, 100, 0.5, 0, num_threads=2)
    for replay in (one, two):
        replay.add(make_chunk(0, 100))
    (a,), (b,) = one.get_state()["records"], two.get_state()["records"]
    assert a.data == b.data


def test_a_reseeded_replay_draws_the_same_whatever_was_drawn_before():
    quiet, busy, other = make(), make(), make()
    for replay in (quiet, busy, other):
        for serial in range(9):
            replay.add(make_chunk(serial, 8))
    busy.sample(4, 4)
    for replay, epoch in ((quiet, 3), (busy, 3), (other, 4)):
        replay.reseed(epoch)
    expected = quiet.sample(4, 4)
    assert_same_batch(busy.sample(4, 4), expected)
    assert (other.sample(4, 4)["actions"] != expected["actions"]).any()
