"""A plan, a storage and a fake `rllib` for all tests of the evidence."""

import json
import sys
from pathlib import Path

import pytest

from benchmarks.evidence.plan import read_plan
from benchmarks.evidence.runner import Runner

PLAN = """
seeds: [3, 1, 2]
fast:
  seeds: 1
  set: {curriculum.epochs_per_task: 1}
  examples: {tes: {updates_per_epoch: 5}}
groups:
  - group: games/default
    methods: {ARROW: arrow_minatar, DV3: dv3_minatar}
    seeds: 2
  - group: games/single
    methods: {ARROW: arrow_minatar}
    tasks: [a, b]
    seeds: 2
  - group: games/default-sac
    methods: {TES-SAC: {example: tes_sac_minatar, set: {tau: 0.01}}}
    seeds: 2
pages:
  games:
    groups: {report: [default, default-sac]}
    baselines: [single]
    tables: {default: {setting: default}}
    paper: atari
headline:
  - {text: "kept of two games", page: games, setting: default, metric: ACC}
"""


@pytest.fixture
def plan_file(tmp_path):
    path = tmp_path / "evidence.yaml"
    path.write_text(PLAN)
    return path


@pytest.fixture
def plan(plan_file):
    return read_plan(plan_file)


@pytest.fixture
def storage(tmp_path):
    path = tmp_path / "storage"
    path.mkdir()
    return path


@pytest.fixture
def rllib(tmp_path):
    """An executable that does as `rllib train file` would."""
    fake = Path(__file__).with_name("fake_rllib.py")
    path = tmp_path / "rllib"
    path.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{fake}" "$@"\n')
    path.chmod(0o755)
    return path


@pytest.fixture
def make_runner(plan, storage, rllib):
    """Returns a runner of the plan's runs, and the lines that it tells."""

    def make(only=(), jobs=2, commit="c1"):
        told: list[str] = []
        runs = plan.runs(only)
        command = [str(rllib)]
        runner = Runner(runs, storage, command, lambda: commit, jobs, tell=told.append)
        return runner, told

    return make


@pytest.fixture
def calls(storage):
    """Returns what was called so far: name, resumed or "end", threads, time."""

    def read():
        path = storage / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        return [json.loads(line) for line in lines]

    return read
