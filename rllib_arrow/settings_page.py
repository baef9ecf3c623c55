"""Writes docs/settings.md from the declarations of all settings."""

from __future__ import annotations

from collections.abc import Iterable

from rllib_arrow import ARROWConfig, DV3Config, QUIVERConfig, TESSACConfig
from rllib_arrow.algorithms.continual_config import ContinualConfig
from rllib_arrow.algorithms.dv3.beyond_config import BeyondConfig
from rllib_arrow.files import write_aside
from rllib_arrow.settings import RLLIB, RLLIB_HEAD, Setting

FILE = "docs/settings.md"
TITLES = {
    ContinualConfig: "Every algorithm: `continual()`",
    DV3Config: "DV3 and ARROW: `training()`",
    BeyondConfig: "DV3 and ARROW, beyond the paper: `training()`",
    ARROWConfig: "ARROW alone: `training()`",
    QUIVERConfig: "QUIVER, which has ARROW's settings too: `training()`",
    TESSACConfig: "TES-SAC: `training()`",
}
HEAD = """# Settings

Written by `python -m rllib_arrow.settings_page` from the declarations in the code. In a
tuned example a setting stands under `config`; in Python, the method in the heading sets
it, and RLlib's own settings are set by RLlib's methods: `debugging(seed=...)`,
`env_runners(...)`, `evaluation(...)`. `help(ARROWConfig.training)` lists all settings
of ARROW, and so for the others."""


def page() -> str:
    """Returns the text of docs/settings.md."""
    parts = [HEAD]
    for cls, title in TITLES.items():
        own = [one for one in cls.declared_settings.values() if one.owner is cls]
        rllib = [one for one in own if one.set_by == RLLIB]
        parts += [f"## {title}", _table(one for one in own if one.set_by != RLLIB)]
        if rllib:
            parts += [RLLIB_HEAD, _table(rllib)]
    return "\n\n".join(parts) + "\n"


def _table(settings: Iterable[Setting]) -> str:
    rows = ["| setting | default | allowed | what it does |", "| --- " * 4 + "|"]
    for one in settings:
        cells = (f"`{one.name}`", f"`{one.default!r}`", one.allowed, one.sentence)
        rows.append(f"| {' | '.join(cells)} |")
    return "\n".join(rows)


if __name__ == "__main__":
    write_aside(FILE, page())
