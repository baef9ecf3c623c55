"""What is known of a run on disk: where it stands, its commits, seconds and bytes."""

from __future__ import annotations

import json
import subprocess
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from benchmarks.evidence.plan import PlannedRun
from rllib_arrow.files import write_aside

FILE = "evidence.json"
SCORES = "evaluations.csv"
BEARING = (
    *("rllib_arrow", "tuned_examples", "setup.cfg", "constraints.txt"),
    *(":!rllib_arrow/reports", ":!rllib_arrow/metrics"),
)
PUBLISHED = (SCORES, "curriculum.json")  # of the trial; beside them the two records
IF_THERE = ("inside.csv", "memory.csv")  # where diagnostics were on


@dataclass
class Record:
    """The part of a run's story that its own files do not tell."""

    commits: list[str] = field(default_factory=list)  # that it was trained with
    seconds: float = 0.0  # over all attempts
    finished: bool = False
    replay_bytes: int = 0  # of the memory at the end; 0 if nobody noted it
    command: list[str] = field(default_factory=list)


class RunDirectory:
    """A run's directory below the storage, whether it exists yet or not."""

    def __init__(self, storage: Path, run: PlannedRun) -> None:
        self.run = run
        self.path = storage / run.group / run.name
        self.log = storage / run.group / f"{run.name}.log"

    @property
    def record(self) -> Record:
        """What was noted last; a fresh record where nothing was."""
        return read_record(self.path)

    def note(self, record: Record) -> None:
        self.path.mkdir(parents=True, exist_ok=True)
        write_aside(self.path / FILE, to_json(asdict(record)))

    @property
    def can_resume(self) -> bool:
        """Whether Tune has written down enough to go on from."""
        return (self.path / "tuner.pkl").is_file()

    @property
    def finished(self) -> bool:
        return self.record.finished and self.trial is not None

    def note_bytes(self) -> None:
        """Notes what the memory took at the end, where Tune's results are there."""
        results = self.trial / "result.json"
        if results.is_file():
            last = json.loads(results.read_text().splitlines()[-1])
            self.note(replace(self.record, replay_bytes=last["replay"]["bytes"]))

    @property
    def trial(self) -> Path | None:
        """The directory with the scores, of which a run has one."""
        return next((p.parent for p in sorted(self.path.glob(f"*/{SCORES}"))), None)


def read_record(directory: Path) -> Record:
    """Returns what a directory's record tells; a fresh one where there is none."""
    try:
        return Record(**json.loads((directory / FILE).read_text()))
    except (FileNotFoundError, NotADirectoryError):
        return Record()


def to_json(value: Any) -> str:
    return json.dumps(value, indent=2) + "\n"


def commit_of(root: Path) -> str:
    """Returns the newest commit that changed what bears on a run.

    It is marked where files differ from it. Publishing scores, or changing how they
    are reported, makes no other commit of a run.
    """
    try:
        commit = _git(root, "log", "-1", "--format=%h", "--abbrev=12", "--", *BEARING)
        changed = _git(root, "status", "--porcelain", "--", *BEARING)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{commit}-dirty" if changed else commit


def _git(root: Path, *words: str) -> str:
    command = ["git", "-C", str(root), *words]
    told = subprocess.run(command, capture_output=True, text=True, check=True)
    return told.stdout.strip()


def odd_commits(directories: list[RunDirectory]) -> dict[str, list[str]]:
    """Returns the runs that were not wholly trained with the commonest commit."""
    commits = {d.run.path: d.record.commits for d in directories if d.finished}
    every = [commit for of_run in commits.values() for commit in of_run]
    if not every:
        return {}
    usual = max(dict.fromkeys(every), key=every.count)
    return {path: found for path, found in commits.items() if found != [usual]}
