import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rllib_arrow.replay import store
from rllib_arrow.replay.chunk import Chunk
from rllib_arrow.replay.store import BLOCK_FRAMES, ChunkCodec, ChunkStore, Record
from tests.replay.reference import make_chunk


@given(
    length=st.integers(1, 70),
    seed=st.integers(0, 9),
    window=st.tuples(st.floats(0, 1), st.floats(0, 1)),
    frame=st.sampled_from([(1, 1, 1), (3, 5, 2), (16, 16, 3)]),
)
@settings(max_examples=60, deadline=None)
def test_any_window_of_a_chunk_is_read_back_exactly(length, seed, window, frame):
    chunk = make_chunk(seed, length, frame)
    codec = ChunkCodec(length, frame)
    data = codec.encode(chunk)
    start = int(window[0] * (length - 1))
    stop = start + 1 + int(window[1] * (length - start - 1))
    out = np.empty((stop - start, *frame), np.uint8)
    codec.read_frames(data, start, out)
    np.testing.assert_array_equal(out, chunk.obs[start:stop])
    for name in Chunk._fields[1:]:
        np.testing.assert_array_equal(codec.field(data, name), getattr(chunk, name))


def scrolling_and_still():
    """Two blocks of noise: one moves by a row per frame, one only becomes brighter."""
    noise = np.random.default_rng(0).integers(0, 256, (64, 8, 3), np.uint8)
    t = range(BLOCK_FRAMES)
    scrolling = np.stack([np.roll(noise, i, axis=0) for i in t])
    brighter = np.stack([noise + np.uint8(i) for i in t])
    return np.concatenate([scrolling, brighter])


def test_each_block_is_stored_the_smaller_way():
    obs = scrolling_and_still()
    chunk = make_chunk(0, len(obs), obs.shape[1:])._replace(obs=obs)
    codec = ChunkCodec(len(obs), obs.shape[1:])
    data = codec.encode(chunk)
    assert codec.field(data, "is_difference").tolist() == [False, True]
    out = np.empty_like(obs)
    codec.read_frames(data, 0, out)
    np.testing.assert_array_equal(out, obs)


class Counting:
    """An LZ4 codec that counts what is decompressed."""

    def __init__(self, codec):
        self.codec, self.blocks = codec, 0

    def decompress(self, *args, **kwargs):
        self.blocks += 1
        return self.codec.decompress(*args, **kwargs)


def test_only_the_blocks_of_the_window_are_decompressed(monkeypatch):
    chunk = make_chunk(0, 8 * BLOCK_FRAMES)
    codec = ChunkCodec(8 * BLOCK_FRAMES, chunk.obs.shape[1:])
    data = codec.encode(chunk)
    counting = Counting(store._LZ4)
    monkeypatch.setattr(store, "_LZ4", counting)
    out = np.empty((BLOCK_FRAMES, *chunk.obs.shape[1:]), np.uint8)
    codec.read_frames(data, 2 * BLOCK_FRAMES, out)
    assert counting.blocks == 1
    codec.read_frames(data, 2 * BLOCK_FRAMES + 1, out)
    assert counting.blocks == 3


def plain_lz4(block):
    """Decompresses by the words of LZ4's block format, one byte at a time."""
    out, at = bytearray(), 0

    def length(nibble):
        nonlocal at
        total, goes_on = nibble, nibble == 15
        while goes_on:
            total, goes_on = total + block[at], block[at] == 255
            at += 1
        return total

    while True:
        token, at = block[at], at + 1
        literals = length(token >> 4)
        out += block[at : at + literals]
        at += literals
        if at == len(block):
            return bytes(out)
        offset, at = int.from_bytes(block[at : at + 2], "little"), at + 2
        for _ in range(length(token & 15) + 4):
            out.append(out[-offset])


def test_blocks_are_plain_lz4_for_other_readers_too():
    chunk = make_chunk(0, BLOCK_FRAMES)
    codec = ChunkCodec(BLOCK_FRAMES, chunk.obs.shape[1:])
    data = codec.encode(chunk)
    block = data[-int(codec.field(data, "ends")[-1]) :]
    frames = plain_lz4(block)
    frames = np.frombuffer(frames, np.uint8).reshape(chunk.obs.shape)
    if codec.field(data, "is_difference")[0]:
        frames = np.cumsum(frames, axis=0, dtype=np.uint8)
    np.testing.assert_array_equal(frames, chunk.obs)


def test_a_chunk_is_dropped_with_its_last_holder():
    chunks = ChunkStore()
    record = Record(b"12345", "", 7, None)
    chunks.hold(record)
    chunks.hold(record)
    assert (len(chunks), chunks.bytes) == (1, 5)
    chunks.release(7)
    assert chunks[7] is record
    chunks.release(7)
    assert (len(chunks), chunks.bytes) == (0, 0)
    with pytest.raises(KeyError):
        chunks[7]
