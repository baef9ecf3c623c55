"""The `rllib` command: train, evaluate, report, example.

What needs Ray is imported where it is needed: the rest answers at once.
"""

from __future__ import annotations

import argparse
import logging
import os
import sys
import tempfile
import traceback
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rllib_arrow import register
from rllib_arrow.errors import UserError, one_line
from rllib_arrow.experiments import tuned_examples
from rllib_arrow.experiments.arguments import USER_ERROR, make_parser
from rllib_arrow.experiments.experiment import read_experiment
from rllib_arrow.experiments.signals import (
    Terminated,
    ending,
    handle_signals,
    training,
)

FAILED, INTERRUPTED = 1, 130


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command and returns its exit code."""
    args = make_parser().parse_args(argv)
    _stand_in_for_home()
    if not args.debug:
        for name in ("ray", "ray.rllib"):
            logging.getLogger(name).setLevel(logging.ERROR)
    try:
        return COMMANDS[args.command](args)
    except KeyboardInterrupt:
        print("rllib: interrupted", file=sys.stderr)
        return ending.exit_code(INTERRUPTED)
    except Terminated as signal:
        print(f"rllib: ended by {signal}", file=sys.stderr)
        return 128 + signal.number
    except BrokenPipeError:
        # The reader of our output left; what is still buffered has nowhere to go.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return FAILED
    except Exception as error:
        if args.debug:
            traceback.print_exc()
        # What an actor of Ray raised arrives in an error of Ray's, as its cause.
        cause = getattr(error, "cause", None)
        cause = cause if isinstance(cause, Exception) else error
        if isinstance(cause, (UserError, OSError)):
            print(f"rllib: {_one_line(cause)}", file=sys.stderr)
            return USER_ERROR
        where = "" if args.debug else f" (traceback: {_save_traceback(error)})"
        bug = f"{type(cause).__name__}: {_one_line(cause)}{where}"
        print(f"rllib: this is a bug: {bug}", file=sys.stderr)
        return FAILED


def _stand_in_for_home() -> None:
    """Names a directory to a process whose user has none: Ray cannot start otherwise.

    Nothing is written there; runs lie below `--storage`.
    """
    try:
        Path.home()
    except RuntimeError:
        os.environ["HOME"] = tempfile.gettempdir()


def _save_traceback(error: Exception) -> str:
    """Writes the traceback to a new file and returns its path."""
    try:
        handle, path = tempfile.mkstemp(prefix="rllib-", suffix=".txt")
        with open(handle, "w") as file:
            traceback.print_exception(error, file=file)
    except OSError:  # such as a full disk, which may be behind it all
        return "--debug shows it"
    return path


def _one_line(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename:
        return f"{error.filename}: {error.strerror}"
    return one_line(error)


def train(args: argparse.Namespace) -> int:
    """Trains all trials of an experiment."""
    handle_signals()
    file = tuned_examples.find(args.file)
    experiment = read_experiment(file, args.set, args.stop, args.num_samples)
    experiment = replace(experiment, callbacks=tuple(args.callback))

    from rllib_arrow.algorithms.within_epoch import open_board
    from rllib_arrow.experiments import launch
    from rllib_arrow.experiments.callbacks import check_blame, load_callback
    from rllib_arrow.experiments.cluster import connect
    from rllib_arrow.experiments.last_save import SaveBeforeTheEnd
    from rllib_arrow.experiments.location import (
        check_location,
        check_space,
        location_of,
        lock_run,
    )
    from rllib_arrow.experiments.mistakes import is_users_mistake, try_environments
    from rllib_arrow.experiments.placement import cluster_resources
    from rllib_arrow.experiments.progress import ProgressDisplay
    from rllib_arrow.ray_private import never_retried

    named = {text: load_callback(text) for text in args.callback}

    location = location_of(args.storage, args.name or experiment.name)
    with lock_run(location):
        check_location(location, args.resume)
        try_environments(experiment)
        connect(args.debug)
        cluster = cluster_resources()
        callbacks = [ProgressDisplay(), SaveBeforeTheEnd(), *named.values()]
        make = launch.restore_tuner if args.resume else launch.make_tuner
        tuner = make(experiment, location, cluster, callbacks)
        print(f"Run: {location}", flush=True)
        try:
            # The display finds the board by name.
            with open_board(), training(), never_retried(is_users_mistake):
                results = tuner.fit()
        except Exception as error:
            # Tune, too, writes there, and stumbles over what it could not write.
            check_space(location)
            check_blame(error, named)
            raise
        return ending.exit_code(_print_end(results, location))


def _print_end(results: Any, location: str) -> int:
    from rllib_arrow.experiments.mistakes import is_users_mistake
    from rllib_arrow.experiments.progress import reason

    unfinished = [r for r in results if not (r.metrics or {}).get("done")]
    for result in results.errors:
        print(f"rllib: a trial failed: {reason(str(result))}", file=sys.stderr)
    if results.errors or unfinished:
        state = f"{len(unfinished)} of {len(results)} trials are not finished"
        print(f"rllib: {state}; the same command with --resume continues", flush=True)
        if not results.errors:
            return INTERRUPTED
        return USER_ERROR if all(map(is_users_mistake, results.errors)) else FAILED
    print("To evaluate a checkpoint again, and to compare runs:")
    newest = next((r.checkpoint for r in results if r.checkpoint), None)
    if newest:
        print(f"  rllib evaluate {newest.path}")
    print(f"  rllib report {location} --out {location}/report", flush=True)
    return 0


def evaluate(args: argparse.Namespace) -> int:
    """Scores a checkpoint on every task of its run, or on some."""
    _check_checkpoint(args.checkpoint)
    if args.csv:
        _check_writable(args.csv)
    if args.video and args.video.exists() and not args.video.is_dir():
        raise UserError(f"--video {args.video}: must be a directory")

    register()
    import pandas as pd

    from rllib_arrow.checkpoints.restore_to_act import evaluate_checkpoint
    from rllib_arrow.experiments.cluster import connect
    from rllib_arrow.experiments.mistakes import search_here
    from rllib_arrow.files import write_aside
    from rllib_arrow.runs.scores import to_csv

    search_here()
    connect(args.debug)
    path = args.checkpoint.resolve()
    rows = evaluate_checkpoint(path, episodes=args.episodes, tasks=args.tasks)
    first = rows[0]
    print(
        f"{first['method']} on {first['suite']} ({first['setting']}, seed "
        f"{first['seed']}), after epoch {first['epoch']}, {first['frames']:,} frames"
    )
    columns = ["eval_task", "return_mean", "return_std", "episodes"]
    table = pd.DataFrame(rows)[columns]
    print(table.to_string(index=False, float_format="{:.4g}".format))
    if args.csv:
        write_aside(args.csv, to_csv(rows))
        print(f"Rows: {args.csv}")
    if args.video:
        from rllib_arrow.experiments.films import film_checkpoint

        for film in film_checkpoint(path, args.video, args.tasks):
            print(f"Film: {film}")
    return 0


def _check_checkpoint(path: Path) -> None:
    if not path.is_dir():
        raise UserError(f"{path}: no such checkpoint directory")
    if not (path / "rllib_checkpoint.json").is_file():
        inside = sorted(path.glob("**/checkpoint_*/rllib_checkpoint.json"))
        hint = f", but {inside[-1].parent} is one" if inside else ""
        raise UserError(f"{path}: not an RLlib checkpoint{hint}")


def _check_writable(path: Path) -> None:
    if path.is_dir() or not path.resolve().parent.is_dir():
        raise UserError(f"--csv {path}: must be a file in an existing directory")


def report(args: argparse.Namespace) -> int:
    """Writes tables, figures and a page about runs."""
    for path in [*args.runs, *([args.baselines] if args.baselines else [])]:
        if not path.exists():
            raise UserError(f"{path}: no such run directory or CSV file")

    from rllib_arrow.reports import forgetting_table, write_report
    from rllib_arrow.runs.load import load_runs

    runs = load_runs(*args.runs, baselines=args.baselines)
    page = write_report(runs, args.out)
    print(forgetting_table(runs))
    print(f"Report: {page.resolve()}")
    return 0


def list_examples(args: argparse.Namespace) -> int:
    """Names every tuned example, with a line on what it is."""
    groups = tuned_examples.grouped()
    width = max(len(name) for found in groups.values() for name in found)
    for group, found in groups.items():
        print(group)
        for name, description in found.items():
            print(f"  {name:<{width}}  {description}")
    print(f"Files: {tuned_examples.directory()}")
    return 0


def show_example(args: argparse.Namespace) -> int:
    """Prints a tuned example as it stands in its file."""
    print(tuned_examples.find(args.name).read_text(encoding="utf-8"), end="")
    return 0


COMMANDS = {
    command.__name__: command
    for command in (train, evaluate, report, list_examples, show_example)
}

if __name__ == "__main__":
    raise SystemExit(main())
