"""Settings of an algorithm as they are written in YAML: types and search spaces."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from rllib_arrow.ray_private import is_deprecated
from rllib_arrow.settings import Setting, SettingError, is_number, nearest

SPACES = ("grid_search", "choice", "uniform", "loguniform")


def settable(default_config: Any) -> dict[str, Any]:
    """Returns the settings of an `AlgorithmConfig` that data can express.

    Left out are private and deprecated ones, and those that hold code.
    """

    def is_data(value: Any) -> bool:
        code = isinstance(value, (type, enum.Enum)) or callable(value)
        return not code and not is_deprecated(value)

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


def kinds_of(default_config: Any) -> dict[str, Setting]:
    """Returns what may stand in YAML for each setting of an `AlgorithmConfig`.

    Those of this package are declared; those of RLlib have the type of their default.
    """
    kinds = {
        key: Setting.like(value) for key, value in settable(default_config).items()
    }
    for key in kinds:
        if re.match("num_[cg]pus", key):  # RLlib's defaults are whole, but halves do
            kinds[key].types = (float,)
    # Here alone: whether there is a GPU is known when the run is started.
    kinds["num_gpus_per_learner"].values = ("auto",)
    return kinds | default_config.declared_settings


def check_settings(
    config: Mapping[str, Any], kinds: Mapping[str, Setting], where: str = "config"
) -> dict[str, Any]:
    """Returns the settings with numbers in their type; raises for the first mistake."""
    checked = {}
    for key, value in config.items():
        path = f"{where}.{key}"
        if key not in kinds:
            raise SettingError(path, value, f"unknown key, {nearest(key, kinds)}")
        checked[key] = _check(path, value, kinds[key])
    return checked


def _check(path: str, value: Any, kind: Setting) -> Any:
    if is_space(value):
        name, values = _check_space(path, value)
        return {name: [_check_plain(path, one, kind) for one in values]}
    if isinstance(value, dict):
        value = _check_spaces_inside(path, value)
    return _check_plain(path, value, kind)


def _check_plain(path: str, value: Any, kind: Setting) -> Any:
    if kind.is_whole and isinstance(value, float) and value.is_integer():
        value = int(value)
    if problem := kind.problem(value):
        raise SettingError(path, value, problem)
    return value


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
    numbers = len(values) == 2 and all(map(is_number, values))
    if not numbers or not values[0] < values[1]:
        raise SettingError(path, space, f"{kind} needs two numbers, the lower first")
    if kind == "loguniform" and values[0] <= 0:
        raise SettingError(path, space, "loguniform needs numbers above 0")
    return kind, values


def spaces(config: Mapping[str, Any]) -> Iterator[tuple[tuple[str, ...], list[Any]]]:
    """Yields the path of every search space, and its values."""
    for key, value in config.items():
        if is_space(value):
            yield (key,), *value.values()
        elif isinstance(value, Mapping):
            yield from (((key, *path), values) for path, values in spaces(value))


def examples(config: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Returns plain settings in which every value of every search space occurs."""
    widest = max((len(values) for _, values in spaces(config)), default=1)
    return [
        _replace_spaces(config, lambda kind, values, i=i: values[i % len(values)])
        for i in range(widest)
    ]


def to_tune(config: Mapping[str, Any]) -> dict[str, Any]:
    """Returns the settings with search spaces as Ray Tune's own objects."""
    from ray import tune

    def make(kind: str, values: list[Any]) -> Any:
        whole = kind in ("grid_search", "choice")
        return getattr(tune, kind)(*([values] if whole else values))

    return _replace_spaces(config, make)


def _replace_spaces(value: Any, replace: Callable[[str, list[Any]], Any]) -> Any:
    """Returns settings with `replace(kind, values)` for every search space."""
    if is_space(value):
        ((kind, values),) = value.items()
        return replace(kind, values)
    if isinstance(value, Mapping):
        return {k: _replace_spaces(inner, replace) for k, inner in value.items()}
    return value
