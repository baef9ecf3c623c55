"""Checkpoints that hold the replay too, and are known to be whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyarrow.fs import LocalFileSystem
from ray.actor import ActorHandle
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.utils.annotations import override
from ray.tune import Checkpoint

from rllib_arrow.algorithms.seal import (
    REPLAY,
    CheckpointError,
    break_seal,
    check_seal,
    older_checkpoints,
    seal,
)
from rllib_arrow.replay.snapshot import SnapshotError
from rllib_arrow.replay.transfer import load_snapshot, save_snapshot


class SealedCheckpoints(Algorithm):
    """RLlib's checkpoints, with a replay snapshot in a folder of them, and a seal."""

    replay: ActorHandle

    def note_recovery(self, line: str) -> None:
        """Takes a line on what was damaged and what was done about it."""
        raise NotImplementedError

    @override(Algorithm)
    def save_to_path(self, path=None, *, filesystem=None, **kwargs: Any) -> str:
        """Saves to a directory of this node."""
        if _is_remote(path, filesystem):
            raise ValueError(
                f"path ({path}) must be a local directory: train under Tune with this "
                "storage, or copy the checkpoint there."
            )
        if path is not None:
            path = Path(path).resolve().as_posix()
        path = super().save_to_path(path, **kwargs)
        self._require_learners("saving")
        save_snapshot(self.replay, Path(path) / REPLAY)
        seal(path)
        return path

    @override(Algorithm)
    def restore_from_path(
        self,
        path,
        *,
        component: str | None = None,
        filesystem=None,
        replay: bool = True,
        **kwargs: Any,
    ) -> None:
        """Restores a checkpoint; with `replay=False` fit for evaluation only."""
        if _is_remote(path, filesystem):
            with Checkpoint(str(path), filesystem).as_directory() as local:
                self.restore_from_path(
                    local, component=component, replay=replay, **kwargs
                )
            return
        path = Path(path).resolve()
        if component is not None:
            super().restore_from_path(path.as_posix(), component=component, **kwargs)
            return
        check_seal(path, replay)
        if replay:
            load_snapshot(self.replay, path / REPLAY)
        super().restore_from_path(path.as_posix(), **kwargs)
        self._require_learners("restoring")

    @classmethod
    @override(Algorithm)
    def from_checkpoint(cls, path, filesystem=None, **kwargs: Any) -> Algorithm:
        """Returns an algorithm as it was saved, having looked at the seal first."""
        if isinstance(path, str | Path) and not _is_remote(path, filesystem):
            path = Path(path).resolve().as_posix()
            check_seal(path, kwargs.get("replay", True))
        return super().from_checkpoint(path, filesystem, **kwargs)

    @override(Algorithm)
    def load_checkpoint(self, checkpoint_dir: str) -> None:
        """Goes on from a checkpoint of Tune's, or from an older one if it is damaged.

        The epochs in between are trained again, to the same result.
        """
        damaged: Exception | None = None
        for path in (checkpoint_dir, *older_checkpoints(checkpoint_dir)):
            try:
                super().load_checkpoint(path)
            except (CheckpointError, SnapshotError) as error:
                # An error from the replay actor carries the actor's traceback.
                damaged = damaged or getattr(error, "cause", error)
                break_seal(path)
                continue
            if damaged is not None:
                self.note_recovery(
                    f"{damaged} Went on from {path}; the epochs since are trained again"
                )
            return
        raise damaged

    def _require_learners(self, doing: str) -> None:
        """Raises if a learner died, which RLlib passes over when it saves and loads."""
        group = self.learner_group
        if group.is_remote and group._worker_manager.num_healthy_actors() < len(group):
            raise RuntimeError(f"A learner died while {doing} a checkpoint.")


def _is_remote(path: Any, filesystem: Any) -> bool:
    if filesystem is not None and not isinstance(filesystem, LocalFileSystem):
        return True
    return path is not None and "://" in str(path)
