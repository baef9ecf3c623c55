"""A configuration that declares its settings: their defaults, checks and methods."""

from __future__ import annotations

import copy
import inspect
import sys
from collections.abc import Callable
from typing import Any, ClassVar

from rllib_arrow.settings import RLLIB, RLLIB_HEAD, Setting, SettingError, nearest

_METHODS = {
    "training": "Sets how the agent learns.",
    "continual": "Sets what is learnt in which order, and how much is remembered.",
}


class DeclaredSettings:
    """Mixed into a configuration before RLlib's class: collects what it declares.

    A declaration leaves the class again, because RLlib has properties among its
    settings; `declared_settings` has all by name, with those of the parents.
    """

    declared_settings: ClassVar[dict[str, Setting]] = {}

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        own = {k: v for k, v in vars(cls).items() if isinstance(v, Setting)}
        for name, declared in own.items():
            kind = text = cls.__annotations__[name]
            if isinstance(text, str):
                kind = eval(text, vars(sys.modules[cls.__module__]))
            declared.set_type(kind)
            declared.type_text = str(text)
            declared.name, declared.owner = name, cls
            declared.set_by = declared.set_by or "training"
            delattr(cls, name)
        merged: dict[str, Setting] = {}
        for parent in reversed(cls.__mro__[1:]):
            merged.update(vars(parent).get("declared_settings", {}))
        cls.declared_settings = {**merged, **own}
        for method in _METHODS:
            if method not in vars(cls):
                setattr(cls, method, _method(cls, method))

    def set_defaults(self) -> None:
        """Gives every declared setting its default."""
        for name, declared in self.declared_settings.items():
            setattr(self, name, copy.deepcopy(declared.default))

    def check_settings(self, *, rllib: bool = True) -> None:
        """Raises for the first setting with a wrong value; RLlib's can be left out."""
        for name, declared in self.declared_settings.items():
            if declared.set_by != RLLIB or rllib:
                value = getattr(self, name)
                if problem := declared.problem(value):
                    raise SettingError(name, value, problem)


def _method(cls: type[DeclaredSettings], name: str) -> Callable[..., Any]:
    """Returns the method that sets what the class declares, and passes on the rest."""

    def method(self: Any, **given: Any) -> Any:
        from ray.rllib.utils.from_config import NotProvided

        taken = _names_taken(type(self), name)
        for key in given:
            if key not in taken:
                hint = _hint(type(self), key, taken)
                raise TypeError(f"{name}() has no setting {key!r}: {hint}")
        own = {key: given.pop(key) for key in own_names if key in given}
        if passes_on := getattr(super(cls, self), name, None):
            passes_on(**given)
        for key, value in own.items():
            if value is not NotProvided:
                setattr(self, key, value)
        return self

    listed = [one for one in cls.declared_settings.values() if one.set_by == name]
    own_names = [one.name for one in listed if one.owner is cls]
    me, rest = inspect.signature(method).parameters.values()
    parameters = [
        me.replace(
            name=one.name,
            kind=me.KEYWORD_ONLY,
            default=one.default,
            annotation=one.type_text,
        )
        for one in listed
    ]
    method.__signature__ = inspect.Signature([me, *parameters, rest])
    method.__name__, method.__module__ = name, cls.__module__
    method.__qualname__ = f"{cls.__qualname__}.{name}"
    method.__doc__ = _help(cls, name)
    return method


def _names_taken(cls: type, method: str) -> set[str]:
    found = (vars(parent).get(method) for parent in cls.__mro__)
    signatures = (inspect.signature(one).parameters for one in found if one)
    return {
        name
        for parameters in signatures
        for name, one in parameters.items()
        if one.kind is one.KEYWORD_ONLY
    }


def _hint(cls: type, key: str, taken: set[str]) -> str:
    for method, _ in inspect.getmembers(cls, inspect.isfunction):
        if key in _names_taken(cls, method):
            return f"{method}() sets it"
    return nearest(key, taken)


def _help(cls: type[DeclaredSettings], method: str) -> str:
    """Returns a docstring; that of `training` lists every setting of the class."""
    heads = {method: _METHODS[method]}
    if method == "training":
        heads["continual"] = "Set with `continual()`:"
        heads[RLLIB] = RLLIB_HEAD
    lines = []
    for set_by, head in heads.items():
        lines += [head, ""]
        for one in cls.declared_settings.values():
            if one.set_by == set_by:
                kind = f"{one.type_text}, default {one.default!r}"
                lines.append(f"    {one.name} ({kind}): {one.sentence}")
        lines.append("")
    return "\n".join(lines)
