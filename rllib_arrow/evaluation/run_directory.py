"""Where a run keeps its files: the trial's directory in Tune's storage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pyarrow.fs import LocalFileSystem

from rllib_arrow.evaluation.score_table import (
    CURRICULUM_JSON,
    EVALUATIONS_CSV,
    curriculum_text,
    to_csv,
    write_atomically,
)


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

    def write_curriculum(self, content: dict[str, Any]) -> None:
        """Writes `curriculum.json`."""
        self._write(CURRICULUM_JSON, curriculum_text(content))

    def write_scores(self, rows: list[dict[str, Any]]) -> None:
        """Writes `evaluations.csv`, whole."""
        self._write(EVALUATIONS_CSV, to_csv(rows))

    def _write(self, name: str, text: str) -> None:
        write_atomically(self.local / name, text)
        if self._remote is not None:
            # An object store shows an object whole or not at all.
            filesystem, path = self._remote
            with filesystem.open_output_stream(f"{path}/{name}") as stream:
                stream.write(text.encode())
