"""Deletes old checkpoints."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from pyarrow import fs
from ray.tune import Callback


class CheckpointPruner(Callback):
    """Keeps the newest checkpoints of each trial.

    Tune's own `num_to_keep` goes by its list of checkpoints. When a run was killed
    just after a deletion, the list names one that is gone, and the resumed run fails
    over it; then it counts wrong and deletes what it should keep. This goes by
    what is there.
    """

    def __init__(self, num_to_keep: int):
        self.num_to_keep = num_to_keep

    def on_checkpoint(
        self, iteration: int, trials: list[Any], trial: Any, checkpoint: Any, **info
    ) -> None:
        """Deletes all but the newest, counted back from the one just written."""
        newest = PurePosixPath(checkpoint.path)
        beside = fs.FileSelector(newest.parent.as_posix())
        found = (entry.path for entry in checkpoint.filesystem.get_file_info(beside))
        older = sorted(
            path
            for path in found
            if path <= checkpoint.path
            and PurePosixPath(path).name.startswith("checkpoint_")
        )
        for path in older[: -self.num_to_keep]:
            checkpoint.filesystem.delete_dir(path)
