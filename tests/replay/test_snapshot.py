import json
import multiprocessing
import os
import resource
import shutil
import signal
import time
import tracemalloc

import numpy as np
import pytest

from rllib_arrow.replay import AugmentedReplay, snapshot
from rllib_arrow.replay.snapshot import SnapshotError
from tests.replay.reference import assert_same_batch, make_chunk

LENGTH = 32
FRAME = (8, 8, 3)


def fill(replay, start, stop):
    for serial in range(start, stop):
        replay.add(make_chunk(serial, LENGTH, FRAME), task=f"task {serial // 10}")


def filled(chunks=20, capacity=16, fraction=0.5):
    replay = AugmentedReplay(capacity, LENGTH, fraction, seed=3, num_threads=1)
    fill(replay, 0, chunks)
    replay.sample(4, 8)
    return replay


def plain_state(replay):
    state = replay.get_state()
    return state["meta"], [(r.serial, r.task, r.data) for r in state["records"]]


def files(path):
    return {file.name: file.read_bytes() for file in path.iterdir()}


def written_since(path, before):
    """Bytes in files that are new or changed."""
    now = files(path)
    return sum(len(data) for name, data in now.items() if before.get(name) != data)


@pytest.mark.parametrize("fraction", [0, 0.5, 1])
@pytest.mark.parametrize("chunks", [0, 1, 40])
def test_a_restored_replay_continues_bit_for_bit(tmp_path, fraction, chunks):
    replay = AugmentedReplay(8, LENGTH, fraction, seed=3, num_threads=1)
    fill(replay, 0, chunks)
    if chunks:
        replay.sample(4, 8)
    replay.save(tmp_path)
    restored = AugmentedReplay.load(tmp_path)
    assert plain_state(restored) == plain_state(replay)
    for serial in range(chunks, chunks + 20):
        for one in (replay, restored):
            fill(one, serial, serial + 1)
        assert_same_batch(replay.sample(4, 8), restored.sample(4, 8))
    assert plain_state(restored) == plain_state(replay)
    assert restored.stats() == replay.stats()


def test_nothing_is_pickled(tmp_path):
    filled().save(tmp_path)
    assert sorted(files(tmp_path)) == ["manifest", "segment-000001"]
    head, body = (tmp_path / "manifest").read_bytes().split(b"\n")
    assert head.startswith(b"rllib_arrow replay snapshot 1 ")
    assert set(json.loads(body)) == {"meta", "segments", "chunks"}


def test_saving_again_writes_only_new_chunks(tmp_path):
    replay = filled(chunks=16, capacity=32)
    replay.save(tmp_path)
    before = files(tmp_path)
    fill(replay, 16, 18)
    replay.save(tmp_path)
    new = sum(len(r.data) for r in replay.get_state()["records"] if r.serial >= 16)
    manifest = (tmp_path / "manifest").stat().st_size
    assert written_since(tmp_path, before) == new + manifest
    assert plain_state(AugmentedReplay.load(tmp_path)) == plain_state(replay)


def test_saving_again_unchanged_writes_no_chunk(tmp_path):
    replay = filled()
    replay.save(tmp_path)
    before = files(tmp_path)
    replay.save(tmp_path)
    assert files(tmp_path) == before


def test_saving_elsewhere_writes_everything(tmp_path):
    replay = filled()
    replay.save(tmp_path / "a")
    replay.save(tmp_path / "b")
    shutil.rmtree(tmp_path / "a")
    assert plain_state(AugmentedReplay.load(tmp_path / "b")) == plain_state(replay)


def test_a_restored_replay_saves_only_new_chunks_too(tmp_path):
    filled(chunks=16, capacity=32).save(tmp_path)
    restored = AugmentedReplay.load(tmp_path)
    before = files(tmp_path)
    fill(restored, 16, 17)
    restored.save(tmp_path)
    assert files(tmp_path)["segment-000001"] == before["segment-000001"]
    assert len(files(tmp_path)) == 3


def test_garbage_never_exceeds_what_is_needed(tmp_path):
    replay = filled(chunks=8, capacity=8)
    for save in range(30):
        fill(replay, 8 + 3 * save, 11 + 3 * save)
        replay.save(tmp_path)
        segments = [f.stat().st_size for f in tmp_path.glob("segment-*")]
        assert sum(segments) <= 2 * replay.stats()["bytes"]
        assert len(segments) <= 8
    assert plain_state(AugmentedReplay.load(tmp_path)) == plain_state(replay)


def test_another_replay_saved_in_the_same_place_replaces_the_first(tmp_path):
    filled().save(tmp_path)
    other = AugmentedReplay(4, LENGTH, 0, seed=9, num_threads=1)
    fill(other, 100, 108)
    other.save(tmp_path)
    assert plain_state(AugmentedReplay.load(tmp_path)) == plain_state(other)
    assert len(files(tmp_path)) == 2


def test_files_of_others_are_left_alone(tmp_path):
    for name in ("notes.txt", "segment-1", "segment-000001.bak"):
        (tmp_path / name).write_text("mine")
    filled().save(tmp_path)
    assert (tmp_path / "notes.txt").read_text() == "mine"
    assert (tmp_path / "segment-000001.bak").read_text() == "mine"


def load_error(path):
    with pytest.raises(SnapshotError) as error:
        AugmentedReplay.load(path)
    assert "\n" not in str(error.value)
    return str(error.value)


def two_segments(path):
    """Saves twice, with nothing dead in the files."""
    replay = filled(chunks=4, capacity=32)
    replay.save(path)
    fill(replay, 4, 8)
    replay.save(path)
    assert len(files(path)) == 3


def test_every_flipped_bit_is_detected_and_its_file_named(tmp_path):
    two_segments(tmp_path)
    rng = np.random.default_rng(0)
    for name, data in files(tmp_path).items():
        offsets = {0, len(data) - 1, *rng.integers(0, len(data), 150).tolist()}
        for offset in offsets:
            broken = bytearray(data)
            broken[offset] ^= 1 << int(rng.integers(8))
            (tmp_path / name).write_bytes(broken)
            assert name in load_error(tmp_path)
        (tmp_path / name).write_bytes(data)
    AugmentedReplay.load(tmp_path)


def test_every_truncation_is_detected_and_its_file_named(tmp_path):
    two_segments(tmp_path)
    rng = np.random.default_rng(0)
    for name, data in files(tmp_path).items():
        for size in {0, 1, len(data) - 1, *rng.integers(0, len(data), 20).tolist()}:
            (tmp_path / name).write_bytes(data[:size])
            assert name in load_error(tmp_path)
        (tmp_path / name).write_bytes(data + b"x")
        assert name in load_error(tmp_path)
        (tmp_path / name).unlink()
        assert name in load_error(tmp_path)
        (tmp_path / name).write_bytes(data)
    AugmentedReplay.load(tmp_path)


def test_segments_of_another_snapshot_are_detected(tmp_path):
    filled().save(tmp_path / "a")
    other = AugmentedReplay(16, LENGTH, 0.5, seed=3, num_threads=1)
    fill(other, 100, 120)
    other.save(tmp_path / "b")
    shutil.copy(tmp_path / "b" / "segment-000001", tmp_path / "a" / "segment-000001")
    assert "segment-000001" in load_error(tmp_path / "a")


def test_what_is_not_a_snapshot_is_named(tmp_path):
    assert "is not a replay snapshot" in load_error(tmp_path / "nowhere")
    (tmp_path / "manifest").write_text('{"some": "json"}')
    assert 'is not a "rllib_arrow replay snapshot 1" file' in load_error(tmp_path)


def test_a_damaged_segment_is_written_again_by_the_next_save(tmp_path):
    replay = filled()
    replay.save(tmp_path)
    (tmp_path / "segment-000001").write_bytes(b"short")
    replay.save(tmp_path)
    assert plain_state(AugmentedReplay.load(tmp_path)) == plain_state(replay)


class Crash(BaseException):
    """Stands for the end of the process: nothing handles it."""


@pytest.mark.parametrize("step", range(5))
@pytest.mark.parametrize("function", ["fsync", "replace", "unlink"])
def test_a_save_that_stops_anywhere_leaves_a_whole_snapshot(
    tmp_path, monkeypatch, function, step
):
    replay = filled(chunks=16, capacity=8)
    replay.save(tmp_path)
    before = plain_state(replay)
    fill(replay, 16, 36)
    after = plain_state(replay)
    calls = iter(range(100))
    real = getattr(os, function)

    def crash(*args, **kwargs):
        if next(calls) == step:
            raise Crash
        return real(*args, **kwargs)

    with monkeypatch.context() as patch:
        patch.setattr(os, function, crash)
        try:
            replay.save(tmp_path)
        except Crash:
            expected = after if function == "unlink" else before
            assert plain_state(AugmentedReplay.load(tmp_path)) == expected
    replay.save(tmp_path)
    assert plain_state(AugmentedReplay.load(tmp_path)) == after
    assert not list(tmp_path.glob("*.tmp"))


def save_for_ever(path, ready):
    replay = filled(chunks=8, capacity=8)
    for serial in range(8, 10**6):
        replay.save(path)
        ready.set()
        fill(replay, serial, serial + 1)


@pytest.mark.parametrize("delay_ms", [1, 4, 9, 17, 26, 40])
def test_a_killed_process_leaves_a_whole_snapshot(tmp_path, delay_ms):
    context = multiprocessing.get_context("fork")
    ready = context.Event()
    process = context.Process(target=save_for_ever, args=(tmp_path, ready))
    process.start()
    assert ready.wait(30)
    time.sleep(delay_ms / 1000)
    os.kill(process.pid, signal.SIGKILL)
    process.join()
    found = AugmentedReplay.load(tmp_path)
    expected = filled(chunks=8, capacity=8)
    fill(expected, 8, found.stats()["chunks_added"])
    assert plain_state(found) == plain_state(expected)


def test_a_full_disk_is_named_and_leaves_the_earlier_snapshot(tmp_path):
    """A limit on the size of files stands for the end of the disk."""
    replay = filled(chunks=8, capacity=64)
    replay.save(tmp_path)
    before = plain_state(replay)
    fill(replay, 8, 40)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))
    try:
        with pytest.raises(OSError, match="segment-000002") as error:
            replay.save(tmp_path)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert not isinstance(error.value, SnapshotError)
    assert not list(tmp_path.glob("*.tmp"))
    assert plain_state(AugmentedReplay.load(tmp_path)) == before


def test_an_unwritable_place_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file/below"):
        filled().save(tmp_path / "file" / "below")


def test_loading_needs_the_memory_of_the_chunks_and_little_more(tmp_path):
    replay = AugmentedReplay(64, 256, 0, seed=0, num_threads=1)
    for serial in range(64):
        replay.add(make_chunk(serial, 256, (16, 16, 3)))
    size = replay.stats()["bytes"]
    assert size > 5e6
    replay.save(tmp_path)
    tracemalloc.start()
    restored = AugmentedReplay.load(tmp_path)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert restored.stats()["bytes"] == size
    assert peak < 1.1 * size


def test_restoring_keeps_the_settings_that_may_differ(tmp_path):
    replay = filled()
    replay.save(tmp_path)
    own = AugmentedReplay(16, LENGTH, 0.5, seed=8, max_bytes=10**9, num_threads=1)
    own.restore(tmp_path)
    assert own.max_bytes == 10**9
    assert_same_batch(own.sample(4, 8), replay.sample(4, 8))


def test_a_failed_restore_leaves_the_contents(tmp_path):
    replay = filled()
    before = plain_state(replay)
    with pytest.raises(SnapshotError):
        replay.restore(tmp_path / "nowhere")
    filled(capacity=12).save(tmp_path)
    with pytest.raises(ValueError, match="capacity_chunks is 12, this replay's is 16"):
        replay.restore(tmp_path)
    assert plain_state(replay) == before


def test_equal_chunks_share_their_place_on_disk(tmp_path):
    replay = AugmentedReplay(4, LENGTH, 0, seed=0, num_threads=1)
    for _ in range(4):
        replay.add(make_chunk(0, LENGTH, FRAME))
    replay.save(tmp_path)
    size = (tmp_path / "segment-000001").stat().st_size
    assert 4 * size == replay.stats()["bytes"]
    assert plain_state(AugmentedReplay.load(tmp_path)) == plain_state(replay)
    assert snapshot.MANIFEST in files(tmp_path)
