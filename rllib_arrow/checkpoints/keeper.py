"""Keeps what a killed run needs to go on: its checkpoints, and Tune's list of them."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import PurePosixPath
from typing import Any

from pyarrow import fs
from ray.tune import Callback

from rllib_arrow.checkpoints.seal import SEAL
from rllib_arrow.files import write_aside_in
from rllib_arrow.ray_private import TUNE_CHECKPOINT, TUNE_LISTS, is_listed

KEPT = ".kept"


class CheckpointKeeper(Callback):
    """Keeps the newest checkpoints of each trial and deletes the others.

    Tune's own `num_to_keep` goes by its list of checkpoints. When a run was killed
    just after a deletion, the list names one that is gone, and the resumed run fails
    over it; then it counts wrong and deletes what it should keep. This goes by what is
    there, and spares the one that a resume would go on from: several checkpoints may be
    written before Tune's list knows of any. And Tune writes its list in place, so that
    a full disk cuts it short: a copy of the last whole one is kept beside it.
    """

    def __init__(self, num_to_keep: int):
        self.num_to_keep = num_to_keep

    def on_checkpoint(
        self, iteration: int, trials: list[Any], trial: Any, checkpoint: Any, **info
    ) -> None:
        # What cannot be deleted now may be so later; Tune must hear of the new one.
        with suppress(OSError):
            self._delete_older(checkpoint)

    def on_experiment_end(self, trials: list[Any], **info: Any) -> None:
        """Deletes what had to stay until Tune's last list was written, if it can."""
        for trial in trials:
            if trial.checkpoint is not None:
                with suppress(OSError):
                    self._delete_older(trial.checkpoint)

    def _delete_older(self, checkpoint: Any) -> None:
        """Deletes all but the newest, counted back from the one just written.

        One without a seal was found damaged, and counts for nothing.
        """
        store, newest = checkpoint.filesystem, PurePosixPath(checkpoint.path)
        beside = (entry.path for entry in _entries(store, newest.parent))
        older = sorted(
            path
            for path in beside
            if path <= checkpoint.path
            and TUNE_CHECKPOINT.fullmatch(PurePosixPath(path).name)
        )
        try:
            content = keep_lists(store, newest.parent.parent)
        except OSError:
            return  # no room; the list kept earlier may need the older checkpoints
        listed = [path for path in older if is_listed(content, PurePosixPath(path))]
        if not listed:
            return  # a list to come will name one of them
        whole = [path for path in older if _is_file(store, f"{path}/{SEAL}")]
        stay = {*whole[-self.num_to_keep :], listed[-1], checkpoint.path}
        for path in set(older) - stay:
            store.delete_dir(path)


def keep_lists(store: fs.FileSystem, run: PurePosixPath) -> bytes:
    """Copies Tune's lists, if they are whole, each under a name of its own.

    Returns what stands in the copies, by which a resume may go.
    """
    contents = []
    for newest, *_ in _lists(store, run):
        content = _read(store, newest)
        if _is_whole(content):
            write_aside_in(store, newest + KEPT, content)
            contents.append(content)
        elif _is_file(store, newest + KEPT):
            contents.append(_read(store, newest + KEPT))
    return b"\n".join(contents)


def mend_lists(store: fs.FileSystem, run: PurePosixPath) -> list[str]:
    """Fills lists that are empty or cut from the newest whole one; returns lines.

    That is the copy of the list itself, or a list of an earlier start or resume.
    """
    lines = []
    for paths in _lists(store, run):
        # Tune goes by the newest, so that is where it must stand.
        newest, kept = paths[0], [path + KEPT for path in paths]
        for path in (p for pair in zip(paths, kept, strict=True) for p in pair):
            if _is_file(store, path) and _is_whole(content := _read(store, path)):
                if path != newest:
                    write_aside_in(store, newest, content)
                    lines.append(f"{newest} is empty or cut: went on from {path}")
                break
    return lines


def has_whole_list(store: fs.FileSystem, run: PurePosixPath) -> bool:
    """Returns whether Tune has a list of the run's trials that it can read."""
    return any(
        _is_whole(_read(store, newest))
        for newest, *_ in _lists(store, run)
        if PurePosixPath(newest).match(f"{TUNE_LISTS[0]}*.json")
    )


def has_checkpoints(store: fs.FileSystem, run: PurePosixPath) -> bool:
    """Returns whether a trial of the run has saved a checkpoint."""
    trials = (e for e in _entries(store, run) if e.type == fs.FileType.Directory)
    inside = (entry for t in trials for entry in _entries(store, PurePosixPath(t.path)))
    return any(TUNE_CHECKPOINT.fullmatch(PurePosixPath(e.path).name) for e in inside)


def _lists(store: fs.FileSystem, run: PurePosixPath) -> list[list[str]]:
    """Returns Tune's lists of each kind that there is, the newest first."""
    paths = sorted((entry.path for entry in _entries(store, run)), reverse=True)
    kinds = [
        [p for p in paths if PurePosixPath(p).match(f"{start}*.json")]
        for start in TUNE_LISTS
    ]
    return [kind for kind in kinds if kind]


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
