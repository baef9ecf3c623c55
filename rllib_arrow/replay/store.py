"""Chunks in memory: frames compressed in blocks, everything else as arrays.

A stored chunk is one immutable byte string, the same in memory and on disk:

| part | type |
| --- | --- |
| actions | int64 [T] |
| rewards | float32 [T] |
| policy, if it is remembered | float16 [T, units] |
| where each block ends | uint32 [blocks] |
| whether each block is a difference | bool [blocks] |
| is_first, is_terminated | bool [T] each |
| the blocks, one after the other | LZ4 |
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import Executor
from dataclasses import dataclass
from itertools import pairwise
from math import prod

import numpy as np
import pyarrow as pa

from rllib_arrow.replay.chunk import DTYPES, Chunk

# A sample of 32 rows touches 3 blocks of 16 frames on average, so half as much again
# is decoded as is needed. Blocks of 32 are a tenth smaller and a third slower to read.
BLOCK_FRAMES = 16

# LZ4's slower search finds far more in game frames than the quick one, and reading
# costs the same. Higher levels gain a few percent more and take several times as long.
# PyArrow reads without the extra copy that the lz4 package makes.
_LZ4 = pa.Codec("lz4_raw", compression_level=4)


@dataclass(frozen=True, eq=False)
class Record:
    """A chunk as it is stored: the `serial`-th ever added, and a label for people."""

    data: bytes
    digest: str
    serial: int
    task: str | None


class ChunkCodec:
    """Turns chunks of one shape into byte strings, and parts of those into arrays."""

    def __init__(
        self, chunk_length: int, frame_shape: tuple[int, ...], policy_units: int = 0
    ):
        self.chunk_length = chunk_length
        self.frame_shape = tuple(frame_shape)
        self.policy_units = policy_units
        self._frame_bytes = prod(frame_shape)
        blocks = -(-chunk_length // BLOCK_FRAMES)
        parts = (  # wide types first, so that every part is aligned
            ("actions", "<i8", chunk_length),
            ("rewards", "<f4", chunk_length),
            ("ends", "<u4", blocks),
            ("policy", "<f2", chunk_length * policy_units),
            ("is_difference", "?", blocks),
            ("is_first", "?", chunk_length),
            ("is_terminated", "?", chunk_length),
        )
        self._parts = {}
        offset = 0
        for name, dtype, count in parts:
            if count == 0:
                continue
            self._parts[name] = (np.dtype(dtype), count, offset)
            offset += np.dtype(dtype).itemsize * count
        self._header_bytes = offset

    def encode(self, chunk: Chunk, pool: Executor | None = None) -> bytes:
        """Returns the chunk as one byte string; the blocks are spread over `pool`."""
        frames = np.ascontiguousarray(chunk.obs).reshape(self.chunk_length, -1)
        starts = range(0, self.chunk_length, BLOCK_FRAMES)
        spread = map if pool is None else pool.map
        blocks, is_difference = zip(
            *spread(_compress, (frames[s : s + BLOCK_FRAMES] for s in starts)),
            strict=True,
        )
        fields = {
            **chunk._asdict(),
            "ends": np.cumsum([len(block) for block in blocks]),
            "is_difference": np.array(is_difference),
        }
        header = (
            fields[name].astype(dtype).tobytes()
            for name, (dtype, _, _) in self._parts.items()
        )
        return b"".join((*header, *blocks))

    def field(self, data: bytes, name: str) -> np.ndarray:
        """Returns one field of a stored chunk (not `obs`) as a read-only view."""
        dtype, count, offset = self._parts[name]
        flat = np.frombuffer(data, dtype, count, offset)
        return flat.reshape(-1, self.policy_units) if name == "policy" else flat

    def gather(
        self, chunks: Sequence[bytes], starts: Sequence[int], length: int
    ) -> dict[str, np.ndarray]:
        """Returns `length` rows of each stored chunk, as arrays [B, length, ...]."""
        wide = {"obs": self.frame_shape, "policy": (self.policy_units,)}
        names = [*Chunk._fields, *(["policy"] if self.policy_units else [])]
        batch = {
            name: np.empty((len(chunks), length, *wide.get(name, ())), DTYPES[name])
            for name in names
        }
        for sequence, (data, start) in enumerate(zip(chunks, starts, strict=True)):
            self.read_frames(data, start, batch["obs"][sequence])
            for name in names[1:]:
                field = self.field(data, name)
                batch[name][sequence] = field[start : start + length]
        return batch

    def read_frames(self, data: bytes, start: int, out: np.ndarray) -> None:
        """Writes the frames from row `start` on into `out` [length, H, W, C].

        Only the blocks that hold these rows are decompressed.
        """
        out = out.reshape(len(out), -1)
        stop = start + len(out)
        ends = self.field(data, "ends").tolist()
        is_difference = self.field(data, "is_difference")
        view = memoryview(data)[self._header_bytes :]
        for block in range(start // BLOCK_FRAMES, -(-stop // BLOCK_FRAMES)):
            first = block * BLOCK_FRAMES
            count = min(BLOCK_FRAMES, self.chunk_length - first)
            packed = view[ends[block - 1] if block else 0 : ends[block]]
            raw = _LZ4.decompress(packed, decompressed_size=count * self._frame_bytes)
            frames = np.frombuffer(raw, np.uint8).reshape(count, -1)
            if is_difference[block]:
                _integrate(frames[: stop - first])
            low, high = max(start, first), min(stop, first + count)
            out[low - start : high - start] = frames[low - first : high - first]


def _compress(frames: np.ndarray) -> tuple[bytes, bool]:
    """Returns the smaller of two ways to compress a block, and which one it is.

    What hardly moves is smallest as the difference to the frame before; scrolling
    pictures are smallest as they are.
    """
    difference = frames.copy()
    difference[1:] -= frames[:-1]
    plain, moved = (_LZ4.compress(b, asbytes=True) for b in (frames, difference))
    return (moved, True) if len(moved) < len(plain) else (plain, False)


def _integrate(frames: np.ndarray) -> None:
    """Undoes the difference in place.

    `np.add.accumulate` walks along time for each byte, which takes ten times as long.
    """
    for before, frame in pairwise(frames):
        frame += before


class ChunkStore:
    """Stored chunks by serial number, each once however many buffers hold it."""

    def __init__(self):
        self.bytes = 0
        self._records: dict[int, Record] = {}
        self._holders: dict[int, int] = {}

    def __len__(self) -> int:
        return len(self._records)

    def __getitem__(self, serial: int) -> Record:
        return self._records[serial]

    def records(self) -> Iterable[Record]:
        """Returns all stored chunks, oldest first."""
        return (self._records[serial] for serial in sorted(self._records))

    def clear(self) -> None:
        """Drops all chunks, whoever holds them."""
        self.bytes = 0
        self._records.clear()
        self._holders.clear()

    def hold(self, record: Record) -> None:
        """Adds one holder of the chunk, storing it if this is the first."""
        if record.serial not in self._records:
            self._records[record.serial] = record
            self._holders[record.serial] = 0
            self.bytes += len(record.data)
        self._holders[record.serial] += 1

    def release(self, serial: int) -> None:
        """Takes one holder away; what nobody holds is dropped."""
        self._holders[serial] -= 1
        if self._holders[serial] == 0:
            self.bytes -= len(self._records.pop(serial).data)
            del self._holders[serial]

    def bytes_after(self, record: Record, releases: Mapping[int, int]) -> int:
        """Returns the bytes stored once a chunk has come and others were released."""
        dropped = (s for s, times in releases.items() if self._holders[s] == times)
        freed = sum(len(self._records[serial].data) for serial in dropped)
        return self.bytes + len(record.data) - freed
