"""Settings of an algorithm as they are written in YAML: types and search spaces."""

from __future__ import annotations

import difflib
import enum
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

SPACES = ("grid_search", "choice", "uniform", "loguniform")

# Settings whose default does not show all the types they take.
MAPPING_TOO = ("model_size",)
NONE_TOO = ("evaluation_interval",)
FRACTION_TOO = re.compile("num_[cg]pus")
AUTO_TOO = ("num_gpus_per_learner",)


class SettingError(ValueError):
    """A wrong setting; carries the key's path so that a caller can name the file."""

    def __init__(self, key: str, value: Any, problem: str):
        super().__init__(f"{key} = {brief(value)}: {problem}")
        self.key = key


def brief(value: Any) -> str:
    """Returns the value as it would be typed, on one line and not too long."""
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def nearest(name: Any, choices: Iterable[str]) -> str:
    """Returns a hint: the choice that looks most like the name, or all if few."""
    choices = sorted(choices)
    close = difflib.get_close_matches(str(name), choices, n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"allowed are {', '.join(choices)}" if len(choices) < 20 else "no such name"


def settable(default_config: Any) -> dict[str, Any]:
    """Returns the settings of an `AlgorithmConfig` that data can express.

    Left out are private and deprecated ones, and those that hold code.
    """
    from ray._common.deprecation import DEPRECATED_VALUE

    def is_data(value: Any) -> bool:
        code = isinstance(value, (type, enum.Enum)) or callable(value)
        return not code and not (type(value) is int and value == DEPRECATED_VALUE)

    # RLlib keeps a few settings, such as the batch size, behind properties.
    values = {
        key.removeprefix("_"): value
        for key, value in vars(default_config).items()
        if not key.startswith("_") or _is_property(default_config, key[1:])
    }
    del values["in_evaluation"]
    return {key: value for key, value in values.items() if is_data(value)}


def _is_property(config: Any, name: str) -> bool:
    found = getattr(type(config), name, None)
    return isinstance(found, property) and found.fset is not None


def check_settings(
    config: Mapping[str, Any], defaults: Mapping[str, Any], where: str = "config"
) -> dict[str, Any]:
    """Returns the settings with numbers in their type; raises for the first mistake."""
    checked = {}
    for key, value in config.items():
        path = f"{where}.{key}"
        if key not in defaults:
            hint = nearest(key, defaults)
            raise SettingError(path, value, f"unknown key, {hint}")
        checked[key] = _check(path, key, value, defaults[key])
    return checked


def _check(path: str, key: str, value: Any, default: Any) -> Any:
    if is_space(value):
        kind, values = _check_space(path, value)
        return {kind: [_check_plain(path, key, one, default) for one in values]}
    if isinstance(value, dict):
        value = _check_spaces_inside(path, value)
    return _check_plain(path, key, value, default)


def _check_spaces_inside(path: str, mapping: Mapping[str, Any]) -> dict[str, Any]:
    checked = dict(mapping)
    for key, value in mapping.items():
        if is_space(value):
            checked[key] = dict([_check_space(f"{path}.{key}", value)])
        elif isinstance(value, dict):
            checked[key] = _check_spaces_inside(f"{path}.{key}", value)
    return checked


def is_space(value: Any) -> bool:
    """Returns whether the value is meant as a search space: `{choice: [1, 2]}`."""
    return isinstance(value, dict) and any(kind in value for kind in SPACES)


def _check_space(path: str, space: Mapping[str, Any]) -> tuple[str, list[Any]]:
    if len(space) > 1:
        raise SettingError(path, space, "a search space has no other keys beside it")
    ((kind, values),) = space.items()
    if not isinstance(values, list) or not values:
        raise SettingError(path, space, f"{kind} needs a list of values")
    if kind in ("grid_search", "choice"):
        return kind, values
    ends = [to_number(end) for end in values]
    if len(ends) != 2 or None in ends or not ends[0] < ends[1]:
        raise SettingError(path, space, f"{kind} needs two numbers, the lower first")
    if kind == "loguniform" and ends[0] <= 0:
        raise SettingError(path, space, "loguniform needs numbers above 0")
    return kind, ends


def _check_plain(path: str, key: str, value: Any, default: Any) -> Any:
    if value is None and (default is None or key in NONE_TOO):
        return None
    if value == "auto" and key in AUTO_TOO:
        return value
    if isinstance(value, dict) and key in MAPPING_TOO:
        return value
    if default is None:
        return _require(path, value, not spells_number(value), _AS_NUMBER)
    if isinstance(default, bool):
        return _require(path, value, isinstance(value, bool), "true or false")
    if isinstance(default, (int, float)):
        whole = isinstance(default, int) and not FRACTION_TOO.match(key)
        return _number(path, value, whole)
    if isinstance(default, str):
        if default == "auto" and to_number(value) is not None:
            return to_number(value)
        return _require(path, value, isinstance(value, str), "a text")
    if isinstance(default, dict):
        return _require(path, value, isinstance(value, dict), "a mapping")
    return _require(path, value, isinstance(value, list), "a list")


_AS_NUMBER = "written with a point and a sign in the exponent: 1.0e-4"


def _require(path: str, value: Any, holds: bool, expected: str) -> Any:
    if not holds:
        raise SettingError(path, value, f"must be {expected}")
    return value


def _number(path: str, value: Any, whole: bool) -> int | float:
    number = to_number(value)
    if number is None or (whole and number != int(number)):
        expected = "a whole number" if whole else "a number"
        expected += f", {_AS_NUMBER}" if spells_number(value) else ""
        raise SettingError(path, value, f"must be {expected}")
    return int(number) if whole else number


def to_number(value: Any) -> int | float | None:
    """Returns the value if it is a finite number, else None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return None


def spells_number(value: Any) -> bool:
    """Whether the value is a text such as `1e-4`, which YAML does not take for one.

    In a file that is an error: other readers of the same file would see a text. On
    the command line nobody writes texts of this form, and it is read as the number.
    """
    if not isinstance(value, str):
        return False
    return re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", value) is not None


def spaces(config: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """Returns the paths of all search spaces."""
    found = []
    for key, value in config.items():
        if is_space(value):
            found.append((key,))
        elif isinstance(value, Mapping):
            found += [(key, *path) for path in spaces(value)]
    return found


def examples(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns plain settings in which every value of every search space occurs."""
    return [_pick(config, i) for i in range(_widest(config))]


def _widest(value: Any) -> int:
    if is_space(value):
        (values,) = value.values()
        return len(values)
    if isinstance(value, Mapping):
        return max([_widest(inner) for inner in value.values()], default=1)
    return 1


def _pick(value: Any, i: int) -> Any:
    if is_space(value):
        (values,) = value.values()
        return values[i % len(values)]
    if isinstance(value, Mapping):
        return {key: _pick(inner, i) for key, inner in value.items()}
    return value


def to_tune(value: Any) -> Any:
    """Returns the settings with search spaces as Ray Tune's own objects."""
    from ray import tune

    if is_space(value):
        ((kind, values),) = value.items()
        if kind in ("grid_search", "choice"):
            return getattr(tune, kind)(values)
        return getattr(tune, kind)(*values)
    if isinstance(value, Mapping):
        return {key: to_tune(inner) for key, inner in value.items()}
    return value
