"""Checks of settings: every complaint is one line with the value and the remedy."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Iterable
from types import ModuleType
from typing import Any

from rllib_arrow.errors import UserError
from rllib_arrow.settings import SettingError, is_number


def unknown(kind: str, name: Any, choices: Iterable[str]) -> UserError:
    """Returns the error for a name that does not exist, with the nearest that does."""
    choices = list(choices)
    close = difflib.get_close_matches(str(name), choices, n=1, cutoff=0.5)
    hint = f"did you mean {close[0]!r}? " if close else ""
    allowed = ", ".join(choices) or "none"
    return UserError(f"unknown {kind} {name!r}: {hint}(allowed: {allowed})")


def check_known(kind: str, names: Iterable[Any], choices: Iterable[str]) -> None:
    """Raises for the first of the names that is not among the choices."""
    choices = list(choices)
    for name in names:
        if name not in choices:
            raise unknown(kind, name, choices)


def check_integer(name: str, value: Any, minimum: int) -> int:
    """Returns the value if it is an integer of at least `minimum`."""
    # YAML's `true` and `1e3` arrive as bool and str; neither is meant as a count.
    if isinstance(value, bool) or not isinstance(value, int) or value < minimum:
        raise SettingError(name, value, f"must be an integer >= {minimum}")
    return value


def check_boolean(name: str, value: Any) -> bool:
    """Returns the value if it is true or false."""
    if not isinstance(value, bool):
        raise SettingError(name, value, "must be true or false")
    return value


def check_probability(name: str, value: Any) -> float:
    """Returns the value as a float if it is a number in [0, 1]."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    if not number or not 0 <= value <= 1:
        raise SettingError(name, value, "must be a number in [0, 1]")
    return float(value)


def check_finite(name: str, value: Any) -> float:
    """Returns the value as a float if it is a finite number."""
    if not is_number(value):
        raise SettingError(name, value, "must be a finite number")
    return float(value)


def check_positive(name: str, value: Any) -> float:
    """Returns the value as a float if it is a finite number above zero."""
    if not is_number(value) or value <= 0:
        raise SettingError(name, value, "must be a finite number > 0")
    return float(value)


def require(module: str, distribution: str, suite: str) -> ModuleType:
    """Imports a suite's simulator, which is loaded only when a task is made."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        raise UserError(
            f"suite {suite!r} needs the package {distribution!r} ({error}); "
            f"run: pip install {distribution}"
        ) from error
