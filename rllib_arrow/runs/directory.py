"""Where a run keeps its files: the trial's directory in Tune's storage."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import Any

from pyarrow.fs import LocalFileSystem

from rllib_arrow.curriculum.exposure import Exposure
from rllib_arrow.curriculum.schedule import Curriculum
from rllib_arrow.files import write_aside, write_aside_in
from rllib_arrow.runs import curricula, scores


class RunDirectory:
    """Writes to the trial's storage, or to the log directory outside of Tune."""

    def __init__(self, logdir: str, storage: Any = None):
        self._remote = None
        self.local = Path(logdir)
        if storage is not None:
            if isinstance(storage.storage_filesystem, LocalFileSystem):
                self.local = Path(storage.trial_fs_path)
            else:
                self._remote = (storage.storage_filesystem, storage.trial_fs_path)
        self.local.mkdir(parents=True, exist_ok=True)

    def write_curriculum(
        self,
        curriculum: Curriculum,
        frames_per_epoch: int,
        exposures: Sequence[Exposure] | None = None,
    ) -> None:
        """Writes `curriculum.json`; `exposures` where a rule of the run switched."""
        text = curricula.to_json(curriculum, frames_per_epoch, exposures)
        self.write(curricula.CURRICULUM_JSON, text)

    def write_scores(self, rows: list[dict[str, Any]]) -> None:
        """Writes `evaluations.csv`, whole."""
        self.write(scores.EVALUATIONS_CSV, scores.to_csv(rows))

    def write(self, name: str, content: str | bytes) -> None:
        """Writes a file, whole; its name may have a folder in front."""
        content = content.encode() if isinstance(content, str) else content
        file = self.local / name
        file.parent.mkdir(parents=True, exist_ok=True)
        write_aside(file, content)
        if self._remote is not None:
            filesystem, path = self._remote
            folder = PurePosixPath(path, name).parent.as_posix()
            filesystem.create_dir(folder, recursive=True)
            write_aside_in(filesystem, f"{path}/{name}", content)
