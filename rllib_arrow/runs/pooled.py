"""Which settings differ among runs that are reported as one method."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from rllib_arrow.errors import UserError
from rllib_arrow.files import check_regular
from rllib_arrow.runs.read import Run
from rllib_arrow.settings import brief

PARAMS_JSON = "params.json"  # Tune's, in a trial's directory: what was set
MAX_BYTES = 2**20
# What may differ between seeds: where and how a run computes, and what it tells.
FREE = {
    *("seed", "env", "label_settings", "diagnostics", "pictures_interval"),
    *("num_cpus_per_env_runner", "num_cpus_per_learner", "num_gpus_per_learner"),
    *(
        "sample_timeout_s",
        "local_gpu_idx",
        "use_compile",
        "replay_prefetch",
        "replay_max_bytes",
    ),
    *("evaluation_num_env_runners", "evaluation_parallel_to_training"),
    *("evaluation_config", "evaluation_sample_timeout_s"),
    *("custom_resources_for_replay", "log_level", "callbacks"),
}
ACTORS = ("num_env_runners", "num_learners")  # none is one, in the driver's process
UNTOLD = "left alone"
ADDRESS = re.compile(r" at 0x[0-9a-f]+")  # of an object that JSON cannot say
WHOLE = 100  # settings: so many are an RLlib config's, defaults and all
SHOWN = 4  # values


def pooled_settings(runs: Iterable[Run]) -> dict[str, list[str]]:
    """Returns the settings in which runs differ, each with the values that it has.

    Runs can be compared as far as Tune wrote down what they were set to.
    """
    told = [params for run in runs if (params := _params(run.path.parent))]
    found = {}
    for name in sorted({name for params in told for name in params} - FREE):
        having = [params for params in told if name in params]
        values: dict[str, Any] = {}
        for params in having:
            values.setdefault(_text(name, params[name]), params[name])
        shown = [brief(value) for value in values.values()]
        # Where one tells all its settings, another may have left the same alone.
        if len(having) < len(told) and all(len(params) < WHOLE for params in told):
            shown.insert(0, UNTOLD)
        if len(shown) > 1:
            more = ["..."] if len(shown) > SHOWN else []
            found[name] = [*shown[:SHOWN], *more]
    return found


def _text(name: str, value: Any) -> str:
    """Returns what tells a value from others."""
    if name in ACTORS and isinstance(value, int):
        value = max(1, value)
    return ADDRESS.sub("", json.dumps(value, sort_keys=True))


def _params(directory: Path) -> dict[str, Any]:
    """Returns what a trial was set to; {} if that is not known."""
    file = directory / PARAMS_JSON
    try:
        check_regular(file, MAX_BYTES)
        content = json.loads(file.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError, UserError):
        return {}
    return content if isinstance(content, dict) else {}
