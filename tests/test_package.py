"""What `import rllib_arrow` gives, and what the `rllib` command does without Ray."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
from ray.tune.registry import ENV_CREATOR, TRAINABLE_CLASS, _global_registry

import rllib_arrow

ROOT = Path(__file__).parents[1]

# Runs the command as its script does, and tells which of the slow modules it loaded.
COMMAND = """
import sys
sys.argv[0] = "/somewhere/bin/rllib"
from rllib_arrow.experiments.cli import main
try:
    code = main()
except SystemExit as stop:
    code = stop.code
slow = {"ray", "torch", "pandas", "matplotlib", "gymnasium", "pyarrow"}
print("LOADED", sorted(slow & set(sys.modules)), code)
"""
QUICK = {
    "help": (["--help"], 0),
    "help of a command": (["train", "file", "--help"], 0),
    "list of examples": (["example", "list"], 0),
    "one example": (["example", "show", "arrow_atari"], 0),
    "unknown command": (["trian"], 2),
    "bad option": (["train", "file", "good.yaml", "--num-samples", "x"], 2),
    "bad override": (["train", "file", "good.yaml", "--set", "gamma"], 2),
    "missing file": (["train", "file", "gone.yaml"], 2),
    "bad YAML": (["train", "file", "broken.yaml"], 2),
    "unknown block key": (["train", "file", "key.yaml"], 2),
    "unknown algorithm": (["train", "file", "run.yaml"], 2),
    "bad stop": (["train", "file", "good.yaml", "--stop", "frame=1"], 2),
    "missing checkpoint": (["evaluate", "gone"], 2),
    "not a checkpoint": (["evaluate", "."], 2),
    "missing run": (["report", "gone", "--out", "out"], 2),
}
FILES = {
    "good.yaml": "a: {run: ARROW, config: {}}\n",
    "broken.yaml": "a: {run: [ARROW\n",
    "key.yaml": "a: {run: ARROW, stopp: 1}\n",
    "run.yaml": "a: {run: ARROV}\n",
}


@pytest.mark.parametrize("case", QUICK)
def test_the_command_answers_without_ray_where_it_can(case, tmp_path):
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    words, code = QUICK[case]
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *words],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout.splitlines()[-1] == f"LOADED [] {code}", done.stderr[-1000:]


def test_another_program_registers_on_import_and_names_load_late():
    for name in ("ARROW", "DV3", "QUIVER", "TES-SAC"):
        assert _global_registry.contains(TRAINABLE_CLASS, name)
    assert _global_registry.contains(ENV_CREATOR, "Continual")
    for name in rllib_arrow.__all__:
        assert getattr(rllib_arrow, name).__name__ == name
        assert name in dir(rllib_arrow)
    assert rllib_arrow.__version__ == version("rllib_arrow")
    with pytest.raises(AttributeError, match="no attribute 'AROW'"):
        rllib_arrow.AROW  # noqa: B018


def test_levels_chosen_for_rays_loggers_before_it_is_loaded_stay():
    done = subprocess.run(
        [
            sys.executable,
            "-c",
            "import sys, logging; sys.argv[0] = 'rllib'; import rllib_arrow;"
            "logging.getLogger('ray.rllib').setLevel(logging.ERROR);"
            "rllib_arrow.register(); print(logging.getLogger('ray.rllib').level)",
        ],
        capture_output=True,
        text=True,
        cwd=ROOT,
        timeout=120,
    )
    assert done.stdout.split() == [str(logging.ERROR)], done.stderr
