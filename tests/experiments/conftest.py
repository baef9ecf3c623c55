"""A place for files, and two experiments of which one extends the other."""

from __future__ import annotations

from pathlib import Path

import pytest

BASE = """
base:
  run: ARROW
  stop: {training_iteration: 9}
  config:
    curriculum: {suite: minatar, epochs_per_task: 8, cycles: 1}
    ltdm_fraction: {grid_search: [0.25, 0.5]}
    gamma: 0.9
"""
TOP = """
top:
  extends: base.yaml
  config:
    curriculum: {epochs_per_task: 3, tasks: [breakout]}
    gamma: {choice: [0.8, 0.99]}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def files(tmp_path: Path) -> Path:
    (tmp_path / "base.yaml").write_text(BASE)
    (tmp_path / "top.yaml").write_text(TOP)
    return tmp_path
