"""Hands an experiment to Ray Tune, after asking whether the cluster can run it."""

from __future__ import annotations

import atexit
import json
import logging
import os
import re
import secrets
import shutil
import socket
import tempfile
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import asdict
from pathlib import Path, PurePosixPath
from typing import Any

import ray
from pyarrow import fs
from ray import tune

from rllib_arrow import algorithm_class, register
from rllib_arrow.algorithms.continual_config import PAPER_SEEDS
from rllib_arrow.checkpoints.keeper import CheckpointKeeper, mend_lists
from rllib_arrow.errors import UserError
from rllib_arrow.experiments.experiment import Experiment
from rllib_arrow.experiments.signals import starting_ray
from rllib_arrow.experiments.yaml_settings import examples, is_space, spaces, to_tune
from rllib_arrow.files import write_aside_in
from rllib_arrow.lock import locked
from rllib_arrow.ray_private import autoscaling_limits, stay_on_loopback
from rllib_arrow.seeding import derive_seed
from rllib_arrow.settings import brief

RECORD = "experiment.json"
CONNECT_S = 10.0

# Settings that reports show by method, setting, tasks and seed anyway.
REPORTED_ANYWAY = ("seed", "ltdm_fraction", "tasks", "order", "cycles")

# Ray's own chatter, none of which a user can act upon.
QUIET = {
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_AIR_NEW_OUTPUT": "0",
    "RAY_USAGE_STATS_ENABLED": "0",
    "TUNE_WARN_EXCESSIVE_EXPERIMENT_CHECKPOINT_SYNC_THRESHOLD_S": "0",
}


# Tune writes down which checkpoints there are every ten seconds, while old ones are
# deleted at once: after a kill it would know only of one that is gone.
PROMPT = {"TUNE_GLOBAL_CHECKPOINT_S": "1"}


def connect(debug: bool = False) -> None:
    """Joins the cluster that RAY_ADDRESS names, or starts one on this machine."""
    register()
    for key, value in (PROMPT if debug else {**PROMPT, **QUIET}).items():
        os.environ.setdefault(key, value)
    if ray.is_initialized():
        return
    level = logging.INFO if debug else logging.ERROR
    address = os.environ.get("RAY_ADDRESS")
    own: dict[str, Any] = {}
    if not address:
        # Ray guards a cluster with a token, which it would leave in the home directory
        # for other processes to find. This cluster is ours alone: so is its token.
        if not any(key.startswith("RAY_AUTH_") for key in os.environ):
            os.environ["RAY_AUTH_TOKEN"] = secrets.token_hex(32)
        stay_on_loopback()
        own = {
            "address": "local",
            "include_dashboard": False,
            "_node_ip_address": "127.0.0.1",
            "_temp_dir": _private_directory(keep=debug),
        }
    else:
        _check_reachable(address)
    try:
        with starting_ray():
            ray.init(log_to_driver=debug, logging_level=level, **own)
    except (ConnectionError, RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())
        raise UserError(f"RAY_ADDRESS={address}: no cluster: {reason}") from error
    if not debug:
        # A failed trial's traceback stands in its error.txt; its reason is shown.
        logging.getLogger("ray.tune").setLevel(logging.CRITICAL)


def _private_directory(keep: bool) -> str | None:
    """Returns a directory for Ray's session that no other user can look into.

    Ray lets everybody write to what it makes, so that has to stand below a directory
    of our own, which goes when the process ends (unless Ray's logs in it are wanted).
    """
    if os.environ.get("RAY_TMPDIR"):
        return None  # the user's own choice
    # Ray's sockets stand in there, and their names may not be long.
    place = tempfile.gettempdir()
    private = tempfile.mkdtemp(
        prefix="rllib-", dir=place if len(place) < 30 else "/tmp"
    )

    def remove() -> None:
        ray.shutdown()
        shutil.rmtree(private, ignore_errors=True)

    if not keep:
        atexit.register(remove)
    return f"{private}/ray"


def _check_reachable(address: str) -> None:
    """Refuses a cluster that nobody answers for; Ray would try for 90 seconds."""
    host, _, port = address.removeprefix("ray://").rpartition(":")
    if not host or not port.isdigit():
        return  # a word such as `auto`, which Ray understands
    try:
        socket.create_connection((host.strip("[]"), int(port)), CONNECT_S).close()
    except (OSError, OverflowError) as error:
        raise UserError(f"RAY_ADDRESS={address}: no cluster: {error}") from error


def cluster_resources() -> dict[str, float]:
    """Returns what the cluster has, or may grow to if it has an autoscaler."""
    have = dict(ray.cluster_resources())
    for kind, limit in autoscaling_limits().items():
        have[kind] = max(limit, have.get(kind, 0))
    return have


def place_learners(
    experiment: Experiment, cluster: Mapping[str, float]
) -> tuple[dict[str, Any], str]:
    """Returns the settings with GPUs decided, and a line for the user (or "")."""
    config = dict(experiment.config)
    if config.get("num_gpus_per_learner", "auto") != "auto":
        return config, ""
    config["num_gpus_per_learner"] = 1 if cluster.get("GPU", 0) >= 1 else 0
    if config["num_gpus_per_learner"]:
        return config, ""
    return config, (
        "No GPU in the cluster: training on the CPU. MinAtar examples take minutes to "
        "hours; the paper's Atari and CoinRun runs would take weeks (a day or two on "
        "an A100)."
    )


def check_resources(
    experiment: Experiment, config: dict[str, Any], cluster: Mapping[str, float]
) -> None:
    """Refuses a request that would wait for ever, naming the settings behind it."""
    algorithm = algorithm_class(experiment.run)
    for plain in examples(config):
        request = algorithm.default_resource_request({"env": experiment.env, **plain})
        for kind, need in request.required_resources.items():
            have = cluster.get(kind, 0)
            if need > have:
                settings = _settings_behind(kind, plain, algorithm.get_default_config())
                raise UserError(
                    f"{experiment.file}: {settings} needs {need:g} {kind}s, "
                    f"the cluster has {have:g}"
                )


def _settings_behind(kind: str, plain: dict[str, Any], default: Any) -> str:
    per_actor = f"num_{kind.lower()}s_"
    keys = [key for key in vars(default) if key.startswith(per_actor)]
    keys += ["num_env_runners", "evaluation_num_env_runners", "num_learners"]
    given = [f"{key}={plain[key]}" for key in keys if plain.get(key)]
    return ", ".join(given) or f"run={default.algo_class.__name__}"


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
        raise UserError(f"{location}: {' '.join(str(error).split())}") from error
    if exists and not resume:
        remedy = "continue it with --resume, or choose another --name"
        raise UserError(f"{location}: holds a run already: {remedy}")
    if resume and not exists:
        raise UserError(f"{location}: holds no run to resume; leave out --resume")


def check_space(location: str, needed: int = 2**20) -> None:
    """Complains if the disk of a run is full."""
    if "://" not in location and shutil.disk_usage(location).free < needed:
        remedy = "make room and continue with --resume"
        raise UserError(f"{location}: No space left on device; {remedy}")


def sample_seeds(num_samples: int) -> list[int]:
    """Returns the seeds of so many samples: the paper's five, then derived ones."""
    more = (derive_seed(PAPER_SEEDS[0], "sample", i) for i in range(5, num_samples))
    return [*PAPER_SEEDS[:num_samples], *more]


def param_space(experiment: Experiment, config: dict[str, Any]) -> dict[str, Any]:
    """Returns what Tune varies: the file's search spaces, and a seed per sample.

    Seeds are a grid, so that in a sweep every value meets every seed, and so that
    trials are named after them; also a single seed, that the settings give.
    """
    seeds = config.get("seed", {"grid_search": sample_seeds(experiment.num_samples)})
    if not is_space(seeds):
        seeds = {"grid_search": [seeds]}
    varied = [path for path in spaces(config) if path[-1] not in REPORTED_ANYWAY]
    own = {"env": experiment.env, "label_settings": [".".join(path) for path in varied]}
    return to_tune({**own, **config, "seed": seeds})


def make_tuner(
    experiment: Experiment,
    config: dict[str, Any],
    location: str,
    callbacks: list[tune.Callback],
) -> tune.Tuner:
    """Returns a Tuner for a new run at the location."""
    _write_record(location, experiment)
    checkpoints = dict(experiment.checkpoint_config)
    keeper = CheckpointKeeper(checkpoints.pop("num_to_keep"))
    storage, _, name = location.rpartition("/")
    return tune.Tuner(
        experiment.run,
        param_space=param_space(experiment, config),
        tune_config=tune.TuneConfig(trial_dirname_creator=trial_dirname),
        run_config=tune.RunConfig(
            name=name,
            storage_path=storage,
            stop=experiment.stop or None,
            verbose=0,
            callbacks=[*callbacks, keeper],
            checkpoint_config=tune.CheckpointConfig(**checkpoints),
            failure_config=tune.FailureConfig(max_failures=experiment.max_failures),
        ),
    )


def restore_tuner(experiment: Experiment, location: str) -> tune.Tuner:
    """Returns a Tuner that goes on with the unfinished and failed trials of a run."""
    now, then = _record_of(experiment), _read_record(location)
    for key in {**then, **now}:
        if now.get(key) != then.get(key):
            raise UserError(
                f"{experiment.file}: {key} is {brief(now.get(key))}, but the run in "
                f"{location} was started with {brief(then.get(key))}: resume it with "
                "the same settings, or start another with --name"
            )
    store, path = fs.FileSystem.from_uri(location)
    for line in mend_lists(store, PurePosixPath(path)):
        print(line)
    return tune.Tuner.restore(location, trainable=experiment.run, resume_errored=True)


def trial_dirname(trial: Any) -> str:
    """Returns a name that sorts by number and says what the trial varies."""
    varied = (f"{k.split('/')[-1]}={v}" for k, v in trial.evaluated_params.items())
    settings = re.sub(r"[^\w.=,+-]+", "", ",".join(varied))[:80]
    return f"{trial.trial_id.rpartition('_')[2]}_{settings}"


# What a run was started with, so that --resume can tell whether it is the same one.


def _record_of(experiment: Experiment) -> dict[str, Any]:
    record = asdict(experiment)
    flat = {f"config.{key}": value for key, value in record.pop("config").items()}
    for key in ("file", "description"):
        del record[key]
    if not record["callbacks"]:  # unknown to runs of earlier versions
        del record["callbacks"]
    # Through JSON, so that both sides of a comparison have the same types.
    return json.loads(json.dumps({**record, **flat}))


def _write_record(location: str, experiment: Experiment) -> None:
    store, path = fs.FileSystem.from_uri(location)
    store.create_dir(path, recursive=True)
    record = json.dumps(_record_of(experiment), indent=2).encode() + b"\n"
    write_aside_in(store, f"{path}/{RECORD}", record)


def _read_record(location: str) -> dict[str, Any]:
    store, path = fs.FileSystem.from_uri(location)
    try:
        with store.open_input_stream(f"{path}/{RECORD}") as stream:
            return json.loads(stream.read())
    except (FileNotFoundError, ValueError) as error:
        problem = "missing or damaged, so the run cannot be resumed"
        raise UserError(f"{location}/{RECORD}: {problem}") from error
