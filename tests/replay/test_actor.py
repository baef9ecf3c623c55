import random

import numpy as np
import pytest
import ray

from rllib_arrow.replay import AugmentedReplay
from rllib_arrow.replay.actor import BatchStream, ReplayActor
from rllib_arrow.replay.snapshot import SnapshotError
from rllib_arrow.replay.two_buffers import TwoBufferReplay
from tests.replay.reference import SETTINGS, assert_same_batch, make_chunk

CHUNKS = [make_chunk(serial, 16) for serial in range(20)]


def filled(replay_class):
    replay = replay_class(**SETTINGS)
    for chunk in CHUNKS:
        replay.add([chunk] if replay_class is ReplayActor else chunk, "some task")
    return replay


def local_batches(count, batch_size=8, length=4):
    replay = filled(AugmentedReplay)
    return [replay.sample(batch_size, length) for _ in range(count)]


def joined(parts):
    return {name: np.concatenate([p[name] for p in parts]) for name in parts[0]}


# The rules of the shell need no Ray.


def test_minibatches_are_drawn_by_number_and_shards_are_disjoint():
    shell = filled(ReplayActor)
    calls = [(index, shard) for index in range(10) for shard in range(4)]
    random.Random(0).shuffle(calls)
    parts = {call: shell.batch(*call, 4, 8, 4) for call in calls}
    for index, expected in enumerate(local_batches(10)):
        found = joined([parts[index, shard] for shard in range(4)])
        assert_same_batch(found, expected)


def test_only_the_rows_of_the_shard_are_decompressed(monkeypatch):
    shell = filled(ReplayActor)
    sizes = []
    real = TwoBufferReplay.gather
    monkeypatch.setattr(
        TwoBufferReplay,
        "gather",
        lambda self, draw: sizes.append(len(draw.records)) or real(self, draw),
    )
    shell.batch(5, 1, 4, 8, 4)
    assert sizes == [2]


def test_begin_numbers_from_zero_and_goes_on_drawing():
    shell = filled(ReplayActor)
    shell.begin(1)
    for index in range(3):
        shell.batch(index, 0, 2, 8, 4, epoch=1)
    shell.begin(2)
    parts = [shell.batch(0, shard, 2, 8, 4, epoch=2) for shard in range(2)]
    assert_same_batch(joined(parts), local_batches(4)[3])
    shell.begin(3)
    assert shell.batch(0, 0, 1, 4, 6, epoch=3)["actions"].shape == (4, 6)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 0, 3, 8, 4), r"batch_size \(8\) must be divisible by num_shards \(3\)"),
        ((0, 2, 2, 8, 4), r"shard \(2\) must be in \[0, 2\)"),
        ((0, 0, 1, 8, 4, 5), r"epoch \(5\) is not the one begun last \(0\)"),
        ((0, 0, 1, 8, 17), r"length \(17\)"),
    ],
)
def test_impossible_requests_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        filled(ReplayActor).batch(*arguments)


def test_a_part_is_given_out_once_and_all_minibatches_are_alike():
    shell = filled(ReplayActor)
    shell.batch(1, 0, 1, 8, 4)
    with pytest.raises(ValueError, match="Shard 0 of minibatch 1 has been fetched"):
        shell.batch(1, 0, 1, 8, 4)
    with pytest.raises(ValueError, match="call begin before changing them"):
        shell.batch(2, 0, 1, 4, 4)


@pytest.mark.parametrize(("name", "buffer"), [("ltdm", "ltdm"), ("both", None)])
def test_minibatches_apart_are_numbered_apart_and_change_no_others(name, buffer):
    shell = filled(ReplayActor)
    shell.begin(5)
    apart = {}
    for index in (2, 0, 1):  # in any order, and between the usual ones
        apart[index] = shell.batch(index, 0, 1, 8, 4, 5, name)
        usual = shell.batch(index, 0, 1, 8, 4, 5)
        assert_same_batch(usual, local_batches(3)[index])
    replay = filled(AugmentedReplay)
    slots = replay.get_state()["meta"]["slots"]
    held = {s * 1000 for s in slots["ltdm"]}
    rng = replay.stream("draws", 5, name)
    for index in range(3):
        expected = replay.gather(replay.draw(8, 4, buffer=buffer, rng=rng))
        assert_same_batch(apart[index], expected)
        if buffer:
            assert set((apart[index]["actions"] // 1000 * 1000).ravel()) <= held


# What needs Ray shares one actor, which each test puts back to the same contents.


@pytest.fixture(scope="module")
def shared_actor(cluster):
    actor = ray.remote(num_cpus=0)(ReplayActor).remote(**SETTINGS | {"seed": 1})
    yield actor
    ray.kill(actor)


@pytest.fixture
def actor(shared_actor, tmp_path):
    filled(AugmentedReplay).save(tmp_path / "replay")
    ray.get(shared_actor.load.remote(tmp_path / "replay"))
    return shared_actor


@pytest.mark.parametrize("prefetch", [1, 3, 50])
def test_a_stream_gives_the_minibatches_in_order(actor, prefetch):
    stream = BatchStream(actor, 10, 8, 4, prefetch=prefetch)
    for batch, expected in zip(stream, local_batches(10), strict=True):
        assert_same_batch(batch, expected)
    assert stream.waited_s > 0


def test_two_streams_of_different_pace_share_every_minibatch(actor):
    slow = BatchStream(actor, 10, 8, 4, shard=1, num_shards=2, prefetch=1)
    fast = list(BatchStream(actor, 10, 8, 4, shard=0, num_shards=2, prefetch=4))
    for expected, first, second in zip(local_batches(10), fast, slow, strict=True):
        assert_same_batch(joined([first, second]), expected)


def test_a_stream_can_go_on_where_another_stopped(actor):
    first = list(BatchStream(actor, 4, 8, 4))
    second = list(BatchStream(actor, 6, 8, 4, start=4))
    for found, expected in zip(first + second, local_batches(10), strict=True):
        assert_same_batch(found, expected)


def test_chunks_are_added_by_reference_and_a_count_comes_back(actor):
    assert ray.get(actor.add.remote(ray.put(CHUNKS[:3]), "other")) == 3
    stats = ray.get(actor.stats.remote())
    assert stats["chunks_added"] == 23
    assert stats["fifo_tasks"] == {"other": 3, "some task": 1}


def test_a_snapshot_of_the_actor_is_one_of_the_replay(actor, tmp_path):
    ray.get(actor.save.remote(tmp_path / "again"))
    found = AugmentedReplay.load(tmp_path / "again").sample(8, 4)
    assert_same_batch(found, local_batches(1)[0])
    with pytest.raises(SnapshotError, match="is not a replay snapshot"):
        ray.get(actor.load.remote(tmp_path))
