"""Where a run lives, and what it was started with."""

from __future__ import annotations

import json
import shutil
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path
from typing import Any

from pyarrow import fs
from ray import tune

from rllib_arrow.errors import UserError, one_line
from rllib_arrow.experiments.experiment import Experiment
from rllib_arrow.files import write_aside_in
from rllib_arrow.lock import locked
from rllib_arrow.settings import brief

RECORD = "experiment.json"
PLACED = "placed"  # in the record: settings that the cluster decided


def location_of(storage: str, name: str) -> str:
    """Returns where the run lives: an absolute path or the address of a store."""
    if "://" in storage:
        return f"{storage.rstrip('/')}/{name}"
    return str(Path(storage).expanduser().resolve() / name)


def lock_run(location: str) -> AbstractContextManager[Any]:
    """Locks a run's directory; a second process that starts or resumes it is refused.

    An object store has nothing to lock with.
    """
    return nullcontext() if "://" in location else locked(location)


def check_location(location: str, resume: bool) -> None:
    """Refuses to mix a new run with an old one, or to resume what is not there."""
    try:
        exists = tune.Tuner.can_restore(location)
    except ValueError as error:  # pyarrow's, for an address it does not know
        raise UserError(f"{location}: {one_line(error)}") from error
    if exists and not resume:
        remedy = "continue it with --resume, or choose another --name"
        raise UserError(f"{location}: holds a run already: {remedy}")
    if resume and not exists:
        raise UserError(f"{location}: holds no run to resume; leave out --resume")


def check_space(location: str) -> None:
    """Complains if the disk of a run is full."""
    if "://" not in location and shutil.disk_usage(location).free < 2**20:
        remedy = "make room and continue with --resume"
        raise UserError(f"{location}: No space left on device; {remedy}")


def check_same_run(experiment: Experiment, location: str) -> None:
    """Refuses to resume a run with other settings than it was started with."""
    now, then = _record_of(experiment), _read_record(location)
    then.pop(PLACED, None)  # depends on the cluster
    for key in {**then, **now}:
        if now.get(key) != then.get(key):
            raise UserError(
                f"{experiment.file}: {key} is {brief(now.get(key))}, but the run in "
                f"{location} was started with {brief(then.get(key))}: resume it with "
                "the same settings, or start another with --name"
            )


def write_record(
    location: str, experiment: Experiment, placed: dict[str, Any] | None = None
) -> None:
    """Writes down what a run is started with and, maybe, how it was placed."""
    store, path = fs.FileSystem.from_uri(location)
    store.create_dir(path, recursive=True)
    record = _record_of(experiment) | ({PLACED: placed} if placed else {})
    text = json.dumps(record, indent=2) + "\n"
    write_aside_in(store, f"{path}/{RECORD}", text.encode())


def placed_settings(location: str) -> dict[str, Any]:
    """Returns how a run was placed when it was started; {} if that is not known."""
    return _read_record(location).get(PLACED, {})


def _record_of(experiment: Experiment) -> dict[str, Any]:
    record = asdict(experiment)
    flat = {f"config.{key}": value for key, value in record.pop("config").items()}
    for key in ("file", "description"):
        del record[key]
    if not record["callbacks"]:  # unknown to runs of earlier versions
        del record["callbacks"]
    # Through JSON, so that both sides of a comparison have the same types.
    return json.loads(json.dumps({**record, **flat}, default=str))


def _read_record(location: str) -> dict[str, Any]:
    store, path = fs.FileSystem.from_uri(location)
    try:
        with store.open_input_stream(f"{path}/{RECORD}") as stream:
            return json.loads(stream.read())
    except (FileNotFoundError, ValueError) as error:
        problem = "missing or damaged, so the run cannot be resumed"
        raise UserError(f"{location}/{RECORD}: {problem}") from error
