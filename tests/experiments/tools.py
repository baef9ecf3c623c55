"""Commands that must fail, and the files they are given."""

from __future__ import annotations

from pathlib import Path

import pytest

from rllib_arrow.experiments.cli import main

GOOD = """
mine:
  run: ARROW
  env: Continual
  config:
    curriculum: {suite: minatar, tasks: [breakout], epochs_per_task: 2}
    ltdm_fraction: 0.5
"""


def curriculum(text: str) -> str:
    return f"mine: {{run: ARROW, config: {{curriculum: {{{text}}}}}}}\n"


MINATAR = "suite: minatar, epochs_per_task: 2"


def one_error_line(capsys: pytest.CaptureFixture, argv: list[str]) -> str:
    """Runs a command that must fail like a user's mistake; returns its one line."""
    try:
        code = main(argv)
    except SystemExit as stop:
        code = stop.code
    out, err = capsys.readouterr()
    assert code == 2, err
    assert out == ""
    assert err.count("\n") == 1 and err.endswith("\n"), err
    assert "Traceback" not in err
    return err


def tree(directory: Path) -> dict[str, bytes]:
    files = sorted(p for p in directory.rglob("*") if p.is_file())
    return {str(p): p.read_bytes() for p in files}
