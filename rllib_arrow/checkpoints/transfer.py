"""A replay snapshot on its way between the replay actor's node and this one.

Each node may have a disk of its own, so a path means something on one node only. Where
the actor lives elsewhere, the files travel through Ray's object store in pieces.
"""

from __future__ import annotations

import os
from pathlib import Path

import ray
from ray.actor import ActorHandle

PIECE = 64 * 2**20  # bytes that travel at a time


def save_snapshot(replay: ActorHandle, path: str | os.PathLike) -> None:
    """Writes the replay's snapshot to a new directory of this node."""
    if _lives_here(replay):
        ray.get(replay.save.remote(os.fspath(path)))
        return
    Path(path).mkdir(parents=True, exist_ok=True)
    for name, size in ray.get(replay.journal_files.remote()).items():
        with open(Path(path) / name, "wb") as file:
            for offset in range(0, size, PIECE):
                file.write(ray.get(replay.read.remote(name, offset, PIECE)))


def load_snapshot(replay: ActorHandle, path: str | os.PathLike) -> None:
    """Replaces the replay's contents by a snapshot in a directory of this node."""
    if _lives_here(replay):
        ray.get(replay.load.remote(os.fspath(path)))
        return
    for part in sorted(Path(path).iterdir()):
        with open(part, "rb") as file:
            offset = 0
            while piece := file.read(PIECE):
                ray.get(replay.receive.remote(part.name, offset, piece))
                offset += len(piece)
    ray.get(replay.load_received.remote())


def _lives_here(replay: ActorHandle) -> bool:
    return ray.get(replay.node_id.remote()) == ray.get_runtime_context().get_node_id()
