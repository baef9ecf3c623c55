"""An algorithm that saves its replay too, and restores only what is whole."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from pyarrow.fs import LocalFileSystem
from ray import cloudpickle
from ray.actor import ActorHandle
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.utils.annotations import override
from ray.tune import Checkpoint, Trainable

from rllib_arrow.checkpoints.made_with import check_made_with, write_made_with
from rllib_arrow.checkpoints.seal import (
    REPLAY,
    CheckpointError,
    DamagedCheckpointError,
    break_seal,
    check_seal,
    older_checkpoints,
    seal,
)
from rllib_arrow.checkpoints.transfer import load_snapshot, save_snapshot
from rllib_arrow.curriculum.schedule import Curriculum
from rllib_arrow.errors import UserError
from rllib_arrow.ray_private import actors_of
from rllib_arrow.replay.snapshot import DamagedSnapshotError, SnapshotError


class SealedCheckpoints(Algorithm):
    """RLlib's checkpoints, with a replay snapshot in a folder of them, and a seal.

    Built with `to_act=True` it has no replay and no directory of a run: it can be
    restored and evaluated, and leaves nothing behind.
    """

    curriculum: Curriculum
    replay: ActorHandle | None = None
    _scratch: TemporaryDirectory | None = None

    @override(Algorithm)
    def __init__(self, config: Any = None, *args: Any, to_act=False, **kwargs: Any):
        self.to_act = to_act
        super().__init__(config, *args, **kwargs)

    def note_recovery(self, line: str) -> None:
        """Takes a line on what was damaged and what was done about it."""
        raise NotImplementedError

    def forget_weights(self) -> None:
        """Forgets what is known of the learners' weights: they have changed."""
        raise NotImplementedError

    @override(Trainable)
    def _setup_logdir(self) -> None:
        if not self.to_act:
            super()._setup_logdir()
            return
        self._scratch = TemporaryDirectory(prefix="rllib_arrow-")
        self._logdir = self._scratch.name

    @override(Algorithm)
    def save_to_path(self, path=None, *, filesystem=None, **kwargs: Any) -> str:
        """Saves to a directory of this node."""
        self.require_replay("saved")
        if _is_remote(path, filesystem):
            raise UserError(
                f"path ({path}) must be a local directory: train under Tune with this "
                "storage, or copy the checkpoint there."
            )
        if path is not None:
            path = Path(path).resolve().as_posix()
        path = super().save_to_path(path, **kwargs)
        self._require_learners("saving")
        _name_class(Path(path) / self.CLASS_AND_CTOR_ARGS_FILE_NAME)
        save_snapshot(self.replay, Path(path) / REPLAY)
        write_made_with(path, self.config, self.curriculum, self.iteration)
        seal(path)
        return path

    @override(Algorithm)
    def restore_from_path(
        self,
        path,
        *,
        component: str | None = None,
        filesystem=None,
        seal_checked: bool = False,
        **kwargs: Any,
    ) -> None:
        """Restores a checkpoint that is whole and fits the configuration.

        With `seal_checked` the caller has compared them already.
        """
        if _is_remote(path, filesystem):
            with Checkpoint(str(path), filesystem).as_directory() as local:
                self.restore_from_path(local, component=component, **kwargs)
            return
        path = Path(path).resolve()
        if component is not None:
            super().restore_from_path(path.as_posix(), component=component, **kwargs)
            self._require_learners("restoring")
            self.forget_weights()
            return
        if not seal_checked:
            check_seal(path, replay=not self.to_act)
        if not self.to_act:
            check_made_with(path, self.config)
            load_snapshot(self.replay, path / REPLAY)
        super().restore_from_path(path.as_posix(), **kwargs)
        self._require_learners("restoring")

    @classmethod
    @override(Algorithm)
    def from_checkpoint(
        cls, path, filesystem=None, *, seal_checked: bool = False, **kwargs: Any
    ) -> Algorithm:
        """Returns an algorithm as it was saved, having looked at the seal first."""
        if isinstance(path, str | Path) and not _is_remote(path, filesystem):
            path = Path(path).resolve().as_posix()
            if not seal_checked:
                check_seal(path, replay=not kwargs.get("to_act", False))
            seal_checked = True
        return super().from_checkpoint(
            path, filesystem, seal_checked=seal_checked, **kwargs
        )

    @override(Algorithm)
    def load_checkpoint(self, checkpoint_dir: str) -> None:
        """Goes on from a checkpoint of Tune's, or from an older one if it is damaged.

        The epochs in between are trained again, to the same result. One that could
        not be read keeps its seal: the disk may be back the next time.
        """
        first: Exception | None = None
        for path in (checkpoint_dir, *older_checkpoints(checkpoint_dir)):
            try:
                super().load_checkpoint(path)
            except (CheckpointError, SnapshotError) as error:
                # An error from the replay actor carries the actor's traceback.
                first = first or getattr(error, "cause", error)
                if isinstance(error, DamagedCheckpointError | DamagedSnapshotError):
                    break_seal(path)
                continue
            if first is not None:
                self.note_recovery(
                    f"{first} Went on from {path}; the epochs since are trained again"
                )
            return
        raise first

    @override(Algorithm)
    def cleanup(self) -> None:
        super().cleanup()
        if self._scratch is not None:
            self._scratch.cleanup()

    def require_replay(self, done: str) -> None:
        """Raises if this algorithm was restored to act, and so cannot be `done`."""
        if self.to_act:
            raise UserError(
                f"{type(self).__name__} was restored to act and cannot be {done}: it "
                "has no replay; use from_checkpoint without to_act."
            )

    def _require_learners(self, doing: str) -> None:
        """Raises if a learner died, which RLlib passes over when it saves and loads."""
        group = self.learner_group
        if group.is_remote and actors_of(group).num_healthy_actors() < len(group):
            raise RuntimeError(f"A learner died while {doing} a checkpoint.")


def _name_class(file: Path) -> None:
    """Has a checkpoint name its class, instead of holding a copy of it.

    In an actor, the class is one that Ray derived and that is pickled with its code: a
    later version of this package, or another Python, could not read it.
    """
    stored = cloudpickle.loads(file.read_bytes())
    kind = stored["class"]
    named = getattr(import_module(kind.__module__), kind.__qualname__, None)
    if named is not None:  # else a class of the user's that only its script knows
        stored["class"] = named
        file.write_bytes(cloudpickle.dumps(stored))


def _is_remote(path: Any, filesystem: Any) -> bool:
    if filesystem is not None and not isinstance(filesystem, LocalFileSystem):
        return True
    return path is not None and "://" in str(path)
