import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rllib_arrow.replay import Chunk
from rllib_arrow.replay.splicer import Splicer


def stream(env, episode_lengths):
    """Yields (obs, action, reward, is_first, is_terminated) of one environment."""
    step = 0
    for length in episode_lengths:
        for t in range(length):
            obs = np.array([[[env, step // 256, step % 256]]], np.uint8)
            yield obs, 100 * env + step, step / 8, t == 0, t == length - 1
            step += 1


def push_rows(splicer, rows):
    """Pushes one row per environment."""
    return list(splicer.push([streamed([row]) for row in rows]))


def streamed(rows):
    """Returns the rows of one environment in the form of a long chunk."""
    obs, actions, rewards, *flags = map(np.array, zip(*rows, strict=True))
    return Chunk(obs, actions, rewards.astype(np.float32), *flags)


lengths = st.lists(st.integers(1, 9), min_size=1, max_size=12)


@given(
    episodes=st.lists(lengths, min_size=1, max_size=4),
    chunk_length=st.integers(1, 8),
    breaks=st.sets(st.integers(0, 60)),
)
@settings(max_examples=80, deadline=None)
def test_chunks_laid_end_to_end_are_the_streams(episodes, chunk_length, breaks):
    """Whatever the episode lengths, and however often the splicer is restored."""
    streams = [list(stream(env, e)) for env, e in enumerate(episodes)]
    steps = min(len(s) for s in streams)
    splicer = Splicer(len(streams), chunk_length)
    chunks = []
    for step in range(steps):
        if step in breaks:
            state = splicer.get_state()
            splicer = Splicer(len(streams), chunk_length)
            splicer.set_state(state)
        chunks += push_rows(splicer, [s[step] for s in streams])

    whole = steps // chunk_length
    assert len(splicer) == steps % chunk_length
    assert len(chunks) == whole * len(streams)
    for env, rows in enumerate(streams):
        own = chunks[env :: len(streams)]
        assert all(len(field) == chunk_length for chunk in own for field in chunk)
        for i, name in enumerate(Chunk._fields):
            expected = [row[i] for row in rows[: whole * chunk_length]]
            found = [value for chunk in own for value in getattr(chunk, name)]
            np.testing.assert_array_equal(found, expected)


def test_a_remainder_is_joined_to_the_rows_after_a_cut():
    splicer = Splicer(1, 4)
    rows = list(stream(0, [3])) + list(stream(0, [5]))
    (chunk,) = [c for row in rows[:4] for c in push_rows(splicer, [row])]
    assert chunk.is_first.tolist() == [True, False, False, True]
    assert chunk.actions.tolist() == [0, 1, 2, 0]


def test_later_rows_do_not_change_a_chunk_already_given_out():
    splicer = Splicer(1, 2)
    rows = list(stream(0, [4]))
    chunks = [c for row in rows for c in push_rows(splicer, [row])]
    assert chunks[0].actions.tolist() == [0, 1]
    assert chunks[1].actions.tolist() == [2, 3]


def test_rows_of_another_shape_are_refused():
    splicer = Splicer(2, 4)
    with pytest.raises(ValueError, match=r"obs has shape \(1, 1, 1, 1, 3\)"):
        push_rows(splicer, [next(stream(0, [1]))])


def test_a_state_of_other_environments_is_refused():
    splicer = Splicer(1, 4)
    push_rows(splicer, [next(stream(0, [1]))])
    with pytest.raises(ValueError, match="1 rows of 1 environments"):
        Splicer(2, 4).set_state(splicer.get_state())
    with pytest.raises(ValueError, match="less than chunk_length=1 rows"):
        Splicer(1, 1).set_state(splicer.get_state())


def test_impossible_sizes_are_refused():
    with pytest.raises(ValueError, match=r"num_envs \(0\)"):
        Splicer(0, 4)
    with pytest.raises(ValueError, match=r"chunk_length \(0\)"):
        Splicer(4, 0)


@given(
    cuts=st.lists(st.integers(1, 9), min_size=1, max_size=6),
    chunk_length=st.integers(1, 8),
)
@settings(max_examples=40, deadline=None)
def test_whole_streams_give_the_same_chunks_as_single_rows(cuts, chunk_length):
    steps = sum(cuts)
    envs = [list(stream(env, [4] * steps))[:steps] for env in range(2)]
    one, whole = Splicer(2, chunk_length), Splicer(2, chunk_length)
    expected = [c for rows in zip(*envs, strict=True) for c in push_rows(one, rows)]
    found, start = [], 0
    for cut in cuts:
        parts = [rows[start : start + cut] for rows in envs]
        found += whole.push([streamed(part) for part in parts])
        start += cut
    assert len(found) == len(expected)
    for ours, theirs in zip(found, expected, strict=True):
        for field, other in zip(ours, theirs, strict=True):
            np.testing.assert_array_equal(field, other)
    assert len(whole) == len(one)
