"""Keeps what a killed run needs to go on: its checkpoints, and Tune's list of them."""

from __future__ import annotations

import json
from pathlib import PurePosixPath
from typing import Any

from pyarrow import fs
from ray.tune import Callback

from rllib_arrow.checkpoints.seal import SEAL
from rllib_arrow.files import write_aside_in
from rllib_arrow.ray_private import TUNE_LISTS

KEPT = ".kept"


class CheckpointKeeper(Callback):
    """Keeps the newest checkpoints of each trial and deletes the others.

    Tune's own `num_to_keep` goes by its list of checkpoints. When a run was killed
    just after a deletion, the list names one that is gone, and the resumed run fails
    over it; then it counts wrong and deletes what it should keep. This goes by what is
    there. And Tune writes its list in place, so that a full disk cuts it short: a copy
    of the last whole one is kept beside it.
    """

    def __init__(self, num_to_keep: int):
        self.num_to_keep = num_to_keep

    def on_checkpoint(
        self, iteration: int, trials: list[Any], trial: Any, checkpoint: Any, **info
    ) -> None:
        """Deletes all but the newest, counted back from the one just written.

        One without a seal was found damaged, and counts for nothing.
        """
        store, newest = checkpoint.filesystem, PurePosixPath(checkpoint.path)
        beside = (entry.path for entry in _entries(store, newest.parent))
        older = sorted(
            path
            for path in beside
            if path <= checkpoint.path
            and PurePosixPath(path).name.startswith("checkpoint_")
        )
        try:
            keep_lists(store, newest.parent.parent)
        except OSError:
            return  # no room; the list kept earlier may need the older checkpoints
        whole = [path for path in older if _is_file(store, f"{path}/{SEAL}")]
        for path in set(older) - set(whole[-self.num_to_keep :]) - {checkpoint.path}:
            store.delete_dir(path)


def keep_lists(store: fs.FileSystem, run: PurePosixPath) -> None:
    """Copies Tune's lists, if they are whole, each under a name of its own."""
    for path in _newest_lists(store, run):
        content = _read(store, path)
        if _is_whole(content):
            write_aside_in(store, path + KEPT, content)


def mend_lists(store: fs.FileSystem, run: PurePosixPath) -> None:
    """Puts the copies in the place of lists that were cut short."""
    for path in _newest_lists(store, run):
        kept = path + KEPT
        if _is_file(store, kept) and not _is_whole(_read(store, path)):
            write_aside_in(store, path, _read(store, kept))


def _newest_lists(store: fs.FileSystem, run: PurePosixPath) -> list[str]:
    paths = [entry.path for entry in _entries(store, run)]
    newest = []
    for start in TUNE_LISTS:
        found = [p for p in paths if PurePosixPath(p).name.startswith(start)]
        newest += sorted(p for p in found if p.endswith(".json"))[-1:]
    return newest


def _entries(store: fs.FileSystem, folder: PurePosixPath) -> list[fs.FileInfo]:
    return store.get_file_info(fs.FileSelector(folder.as_posix()))


def _is_file(store: fs.FileSystem, path: str) -> bool:
    return store.get_file_info(path).type == fs.FileType.File


def _is_whole(content: bytes) -> bool:
    try:
        json.loads(content)
    except ValueError:
        return False
    return True


def _read(store: fs.FileSystem, path: str) -> bytes:
    with store.open_input_stream(path) as stream:
        return stream.read()
