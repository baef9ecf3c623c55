import json
import os
import signal

import numpy as np
import pytest
import ray
from ray.util.placement_group import placement_group, remove_placement_group
from ray.util.scheduling_strategies import PlacementGroupSchedulingStrategy

from rllib_arrow.checkpoints import transfer
from rllib_arrow.replay import AugmentedReplay, journal, snapshot
from rllib_arrow.replay.actor import BatchStream
from rllib_arrow.replay.journal import start_journaled_replay
from rllib_arrow.replay.splicer import Splicer
from tests.replay.reference import SETTINGS, assert_same_batch, make_chunk

ADAPTIVE = SETTINGS | {
    "fifo_sampling": "curious",
    "ltdm_probability_rule": "after_change",
    "ltdm_fraction_rule": "balanced",
}
ROWS = 24  # of one environment and epoch: half a chunk is left over every other time


def epoch_rows(epoch):
    """One runner's streams: two environments."""
    return [make_chunk(10 * epoch + env, ROWS) for env in range(2)]


def expected_batches(epochs, count):
    """What a replay fed by hand gives in the last of so many epochs."""
    replay = AugmentedReplay(**SETTINGS)
    splicer = Splicer(2, 16)
    for epoch in range(epochs):
        for chunk in splicer.push(epoch_rows(epoch)):
            replay.add(chunk)
    replay.reseed(epochs - 1)
    return [replay.sample(8, 4) for _ in range(count)]


def assert_gives(actor, epochs, count=4):
    stream = BatchStream(actor, count, 8, 4, epoch=epochs - 1)
    for found, expected in zip(stream, expected_batches(epochs, count), strict=True):
        assert_same_batch(found, expected)


@pytest.fixture(scope="module")
def actor(cluster, tmp_path_factory):
    actor = start_journaled_replay(SETTINGS, tmp_path_factory.mktemp("journal"))
    yield actor
    ray.kill(actor)


def store(actor, epoch):
    rows = ray.put(epoch_rows(epoch))
    return ray.get(actor.store.remote(epoch, "task", rows))


def test_a_killed_replay_comes_back_with_everything_and_draws_the_same(actor, tmp_path):
    """The whole life of one actor, because starting it takes long."""
    assert store(actor, 0)["chunks_added"] == 2
    assert store(actor, 1)["chunks_added"] == 6  # with what was left over
    assert store(actor, 1)["chunks_added"] == 6  # asked again after a failure
    assert_gives(actor, epochs=2)

    ray.get(actor.save.remote(tmp_path / "checkpoint"))
    assert store(actor, 2)["chunks_added"] == 8
    os.kill(ray.get(actor.pid.remote()), signal.SIGKILL)
    assert_gives(actor, epochs=3)
    assert ray.get(actor.stats.remote())["chunks_added"] == 8

    with pytest.raises(RuntimeError, match="cannot take those of epoch 4"):
        store(actor, 4)

    ray.get(actor.load.remote(tmp_path / "checkpoint"))
    assert ray.get(actor.stats.remote())["chunks_added"] == 6
    assert store(actor, 2)["chunks_added"] == 8
    assert_gives(actor, epochs=3)


def adaptive_epochs(epochs):
    """The state of a replay with all adaptive parts, fed by hand."""
    replay = AugmentedReplay(**ADAPTIVE)
    splicer = Splicer(2, 16)
    for epoch in range(epochs):
        replay.begin_epoch()
        for chunk in splicer.push(epoch_rows(epoch)):
            replay.add(chunk, "task")
        replay.reseed(epoch)
        draws = [replay.draw(8, 4) for _ in range(14)]
        replay.note_losses([draw.origin for draw in draws[:4]], epoch_losses(epoch))
    return replay.get_state()["meta"]


def epoch_losses(epoch):
    return np.random.default_rng(epoch).gamma(2.0, size=(4, 8)).astype(np.float32)


def test_a_replay_killed_before_it_learned_the_losses_ends_up_the_same(
    cluster, tmp_path
):
    """Its priorities and shares depend on what was drawn before it died."""
    actor = start_journaled_replay(ADAPTIVE, tmp_path / "journal")
    for epoch in range(3):
        store(actor, epoch)
        list(BatchStream(actor, 14, 8, 4, epoch=epoch))
        if epoch == 2:
            os.kill(ray.get(actor.pid.remote()), signal.SIGKILL)
        for _ in range(2):  # the second time as if the first answer had been lost
            call = actor.learned.remote(epoch, epoch_losses(epoch), 14, 8, 4)
            ray.get(call)
    with pytest.raises(ValueError, match=r"epoch \(7\) is not the one begun last"):
        ray.get(actor.learned.remote(7, epoch_losses(7), 14, 8, 4))
    ray.kill(actor)
    # The journal has the losses too: a death right after them would lose nothing.
    meta = snapshot.load(tmp_path / "journal")["meta"]
    assert meta["sampling"]["fifo"]["losses"]
    expected = json.loads(json.dumps(adaptive_epochs(3)))
    assert {key: meta[key] for key in expected} == expected


def test_a_snapshot_travels_between_nodes_in_pieces(actor, tmp_path, monkeypatch):
    monkeypatch.setattr(transfer, "_lives_here", lambda _: False)
    monkeypatch.setattr(transfer, "PIECE", 100)
    transfer.save_snapshot(actor, tmp_path / "fetched")
    ray.get(actor.save.remote(tmp_path / "written"))
    found, expected = (snapshot.load(tmp_path / n) for n in ("fetched", "written"))
    assert found["meta"] == expected["meta"]
    for one, other in zip(found["records"], expected["records"], strict=True):
        assert (one.serial, one.digest) == (other.serial, other.digest)

    before = ray.get(actor.stats.remote())["chunks_added"]
    store(actor, 3)
    assert ray.get(actor.stats.remote())["chunks_added"] > before
    transfer.load_snapshot(actor, tmp_path / "fetched")
    assert ray.get(actor.stats.remote())["chunks_added"] == before
    store(actor, 3)
    assert_gives(actor, epochs=4)


def test_it_starts_inside_a_full_placement_group_and_ends_when_killed(
    cluster, tmp_path
):
    """As in a Tune trial, whose bundles are all taken."""
    group = placement_group([{"CPU": 1}])
    ray.get(group.ready())

    @ray.remote(num_cpus=1)
    def trial():
        actor = start_journaled_replay(SETTINGS, tmp_path)
        assert ray.get(actor.pid.remote(), timeout=120)
        ray.kill(actor)
        with pytest.raises(ray.exceptions.RayActorError):
            while True:  # a kill takes a moment
                ray.get(actor.pid.remote(), timeout=60)
        return True

    strategy = PlacementGroupSchedulingStrategy(
        group, placement_group_capture_child_tasks=True
    )
    assert ray.get(trial.options(scheduling_strategy=strategy).remote(), timeout=240)
    remove_placement_group(group)


# What the lz4 package wrote for the numbers 0 to 11, before PyArrow took its place.
PACKED_BY_LZ4 = (
    "BCJNGGhAYAAAAAAAAADnNQAAABMAAQATAQgAEwIIABMDCAATBAgAEwUIABMGCAATBwgAEwgI"
    "ABMJCAATCggAgAsAAAAAAAAAAAAAAA=="
)


def test_its_process_loads_neither_rllib_nor_torch(actor):
    looker = {"__name__": "in_no_file"}  # so that Ray sends it by value
    exec("def loaded(actor): import sys; return set(sys.modules)", looker)
    modules = ray.get(actor.__ray_call__.remote(looker["loaded"]))
    assert "rllib_arrow.replay.two_buffers" in modules
    assert not modules & {"ray.rllib", "ray.tune", "torch", "pandas"}


def test_left_over_rows_of_earlier_snapshots_are_read():
    packed = {"dtype": "<i8", "shape": [3, 4], "data": PACKED_BY_LZ4}
    found = journal._unpack({"actions": packed})["actions"]
    np.testing.assert_array_equal(found, np.arange(12).reshape(3, 4))
    again = journal._unpack(journal._pack({"actions": found}))["actions"]
    np.testing.assert_array_equal(again, found)
