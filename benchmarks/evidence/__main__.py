"""The command behind `make evidence`: run, skip, continue, then rebuild the pages.

    python -m benchmarks.evidence [--fast] [--only GROUP ...] [--max-minutes N] [--list]

It can be stopped at any time (Ctrl-C, kill, a power cut): the same command goes on.
"""

from __future__ import annotations

import argparse
import os
import signal
import sys
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from benchmarks.evidence.plan import read_plan
from benchmarks.evidence.publish import copy_headline, publish, recall
from benchmarks.evidence.records import RunDirectory, commit_of
from benchmarks.evidence.runner import ROOT, Runner
from rllib_arrow.errors import UserError
from rllib_arrow.lock import locked

BUSY = "another `make evidence`, or a run that one left behind, is still at work there"
USER_ERROR, UNFINISHED, INTERRUPTED = 2, 1, 130


def make_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="evidence", description="Runs what the results pages show."
    )
    add = parser.add_argument
    add("--plan", type=Path, default=ROOT / "docs/results/evidence.yaml")
    add("--fast", action="store_true", help="a short version, kept apart")
    add("--only", nargs="+", default=[], metavar="GROUP", help="in this order")
    add("--jobs", type=int, default=os.cpu_count() or 1, help="default: one per core")
    add("--max-minutes", type=float, metavar="N", help="then stop; go on another time")
    add("--list", action="store_true", help="show the runs and where they stand")
    add("--pages", action="store_true", help="rebuild all pages, run nothing")
    add("--storage", type=Path, help="default: results/evidence or ..._fast")
    add("--out", type=Path, help="of the pages; default: docs/results, or the storage")
    add("--rllib", type=Path, default=Path(sys.executable).with_name("rllib"))
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Does what the arguments say and returns an exit code."""
    args = make_parser().parse_args(argv)
    name = "evidence_fast" if args.fast else "evidence"
    storage = (args.storage or ROOT / "results" / name).resolve()
    out = args.out or (storage / "pages" if args.fast else ROOT / "docs/results")
    try:
        plan = read_plan(args.plan, args.fast)
        runs = plan.runs(args.only)
        recall(plan, storage, out)
        if args.list:
            return _list([RunDirectory(storage, run) for run in runs])
        # The runs inherit the lock, so that none goes on unseen.
        with locked(storage, tell, name="lock", busy=BUSY, inherited=True) as lock:
            code = 0
            if not args.pages:
                rllib, keep = [str(args.rllib)], [lock]
                commit = partial(commit_of, ROOT)
                runner = Runner(runs, storage, rllib, commit, args.jobs, keep, tell)
                code = _run(runner, args.max_minutes)
            publish(plan, storage, out, tell, afresh=args.pages)
            if out == ROOT / "docs/results":
                copy_headline(out / "README.md", ROOT / "README.md")
    except UserError as error:
        print(f"evidence: {error}", file=sys.stderr)
        return USER_ERROR
    tell(f"Pages: {out}")
    return code


def _run(runner: Runner, minutes: float | None) -> int:
    interrupted = []

    def stop(*_: object) -> None:
        interrupted.append(True)
        tell("Interrupted: runs under way are saved and stopped.")
        runner.stop()

    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, stop)
    complete = runner.go(None if minutes is None else 60 * minutes)
    for directory in runner.failed:
        tell(f"Failed: {directory.run.path}, see {directory.log}")
    if interrupted:
        return INTERRUPTED
    return 0 if complete else UNFINISHED


def _list(directories: list[RunDirectory]) -> int:
    for directory in directories:
        state = "finished" if directory.finished else "to do"
        if state == "to do" and directory.can_resume:
            state = "cut"
        commits = ", ".join(directory.record.commits)
        print(f"{state:<9} {directory.run.path} {commits}".rstrip())
    done = sum(directory.finished for directory in directories)
    print(f"{done} of {len(directories)} runs finished")
    return 0


def tell(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    raise SystemExit(main())
