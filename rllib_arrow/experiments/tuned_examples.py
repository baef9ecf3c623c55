"""Finds the tuned examples: in the checkout, or where the package was installed."""

from __future__ import annotations

import sysconfig
from pathlib import Path

from rllib_arrow import ALGORITHMS
from rllib_arrow.envs.titles import TITLES
from rllib_arrow.errors import UserError
from rllib_arrow.experiments.yaml_files import read_block
from rllib_arrow.settings import nearest

METHODS = [name.lower().replace("-", "_") for name in ALGORITHMS]  # in file names


def directory() -> Path:
    """Returns the directory with the examples.

    A checkout has it beside the package; an installation has it as data files, which
    `setup.cfg` puts under `share`.
    """
    checkout = Path(__file__).resolve().parents[2] / "tuned_examples"
    share = Path("share", "rllib_arrow", "tuned_examples")
    installed = [
        Path(sysconfig.get_path("data", scheme)) / share
        for scheme in (sysconfig.get_default_scheme(), "posix_user")
        if scheme in sysconfig.get_scheme_names()
    ]
    for place in (checkout, *installed):
        if place.is_dir():
            return place
    raise UserError(f"{checkout}: the tuned examples are not installed")


def names() -> list[str]:
    """Returns the names of all examples; those in `base/` are parts, not examples."""
    return sorted(path.stem for path in directory().glob("*.yaml"))


def find(file: str) -> Path:
    """Returns the file, or else the example of that name."""
    if Path(file).is_file():
        return Path(file)
    name = Path(file).name.removesuffix(".yaml")
    if name in names() and file in (name, f"{name}.yaml"):
        return directory() / f"{name}.yaml"
    if Path(file).is_dir():
        raise UserError(f"{file}: is a directory, not a YAML file")
    hint = nearest(name, names())
    raise UserError(f"{file}: no such file or example, {hint}")


def grouped() -> dict[str, dict[str, str]]:
    """Returns the examples with their descriptions, in groups."""
    groups: dict[str, dict[str, str]] = {}
    for name in names():
        _, block = read_block(directory() / f"{name}.yaml")
        groups.setdefault(_group_of(name), {})[name] = block.get("description", "")
    return dict(sorted(groups.items(), key=lambda item: _ORDER.index(item[0])))


def _group_of(name: str) -> str:
    if name.startswith("sweep_"):
        return "Sweeps"
    for suite in sorted(TITLES, key=len, reverse=True):  # minatar_variants first
        if any(name.startswith(f"{method}_{suite}") for method in METHODS):
            return TITLES[suite]
    return "A first look"


_ORDER = ("A first look", *TITLES.values(), "Sweeps")
