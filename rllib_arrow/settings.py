"""What a setting is: default, type, bounds and one sentence, declared in one place.

A configuration class declares a setting as an annotated attribute:

    horizon_H: int = setting(15, "Imagined steps in a dream.", ">= 1")

From it come the default, what `training()` or `continual()` takes, the check in
`validate()`, the type in YAML, the help text, and a line of docs/settings.md, which
`python -m rllib_arrow.settings_page` writes.
"""

from __future__ import annotations

import difflib
import math
import operator
import re
import types
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal, Union, get_args, get_origin

from rllib_arrow.errors import UserError

RLLIB = "RLlib"  # sets some settings with methods of its own
RLLIB_HEAD = "RLlib's own settings, with a default of this package:"
_WORDS = {
    bool: "true or false",
    int: "a whole number",
    float: "a number",
    str: "a text",
    dict: "a mapping",
    list: "a list",
}
_PYTHON = {dict: Mapping, list: (list, tuple)}
_COMPARE = {">": operator.gt, ">=": operator.ge, "<": operator.lt, "<=": operator.le}


class SettingError(UserError):
    """A wrong setting; `key` is its path, such as `curriculum.tasks`."""

    def __init__(self, key: str, value: Any, problem: str):
        super().__init__(key, value, problem)  # all of them, so that it can be pickled
        self.key, self.value, self.problem = key, value, problem.rstrip(".")

    def __str__(self) -> str:
        colon = "" if self.problem.startswith("must") else ":"
        return f"{self.key} ({brief(self.value)}){colon} {self.problem}."


@contextmanager
def naming(key: str, value: Any) -> Iterator[None]:
    """Adds the setting's key to errors about its value."""
    try:
        yield
    except UserError as error:
        if isinstance(error, SettingError) and error.key.startswith(key):
            raise
        raise SettingError(key, value, str(error)) from error


def brief(value: Any) -> str:
    """Returns the value as it would be typed, on one line and not too long."""
    try:
        text = repr(value)
    except ValueError:  # Python does not write out whole numbers of 4,300 digits
        text = "a number too long to be shown"
    return text if len(text) <= 80 else text[:77] + "..."


def nearest(name: Any, choices: Iterable[str]) -> str:
    """Returns a hint: the choice that looks most like the name, or all if few."""
    choices = sorted(choices)
    close = difflib.get_close_matches(str(name), choices, n=1, cutoff=0.5)
    if close:
        return f"did you mean {close[0]!r}?"
    return f"allowed are {', '.join(choices)}" if len(choices) < 20 else "no such name"


def spells_number(value: Any) -> bool:
    """Returns whether the value is a text such as `1e-4`, which YAML reads as a text.

    In a file that is an error: other readers of the same file would see a text. On
    the command line nobody writes texts of this form, and it is read as the number.
    """
    if not isinstance(value, str):
        return False
    return re.fullmatch(r"[-+]?(\d+\.?\d*|\.\d+)([eE][-+]?\d+)?", value) is not None


def is_number(value: Any) -> bool:
    """Returns whether the value is a finite number, and not a bool."""
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    try:
        return number and math.isfinite(value)
    except OverflowError:  # a whole number beyond every float
        return False


@dataclass
class Setting:
    """One declared setting; a class attribute gives it its name and type."""

    default: Any
    sentence: str = ""
    bounds: str = ""  # of a number: "> 0", ">= 1", "[0, 1]", "(0, 1)"
    set_by: str = ""  # a method of the configuration, or RLLIB
    owner: type | None = None  # the class that declares it
    name: str = ""
    type_text: str = ""
    types: tuple[Any, ...] = ()
    values: tuple[Any, ...] = ()  # allowed beside those of the types

    def set_type(self, annotation: Any) -> None:
        """Takes the types and single values apart: `int | Literal["auto"] | None`."""
        union = get_origin(annotation) in (Union, types.UnionType)
        for part in get_args(annotation) if union else (annotation,):
            if part is types.NoneType:
                self.values += (None,)
            elif get_origin(part) is Literal:
                self.values += get_args(part)
            else:
                self.types += (get_origin(part) or part,)

    @classmethod
    def like(cls, default: Any) -> Setting:
        """Returns a setting of the default's type; of any type if that is None."""
        kinds = (type(default),) if type(default) in _WORDS else (list,)
        if default is None or default == "auto":
            kinds = () if default is None else (str, float)
        return cls(default, types=kinds)

    @property
    def is_whole(self) -> bool:
        """Whether a number must be a whole one."""
        return int in self.types and float not in self.types

    @property
    def allowed(self) -> str:
        """What it may be, in words."""
        words = [_WORDS[kind] for kind in self.types]
        if self.bounds:
            sign = "" if self.bounds[0] in "<>" else "in "
            words[-1] += f" {sign}{self.bounds}"
        return " or ".join([*map(repr, self.values), *words])

    def problem(self, value: Any) -> str:
        """Returns what is wrong with the value, or an empty text."""
        if self._fits(value) and not (spells_number(value) and str not in self.types):
            return ""
        remedy = "written with a point and a sign in the exponent: 1.0e-4"
        words = [self.allowed, remedy] if spells_number(value) else [self.allowed]
        return f"must be {', '.join(filter(None, words))}"

    def _fits(self, value: Any) -> bool:
        if any(type(value) is type(one) and value == one for one in self.values):
            return True
        if not self.types and not self.values:
            return True
        if is_number(value) and (int in self.types or float in self.types):
            fraction = self.is_whole and not isinstance(value, int)
            return not fraction and self._is_within_bounds(value)
        plain = [kind for kind in self.types if kind not in (int, float)]
        return any(isinstance(value, _PYTHON.get(kind, kind)) for kind in plain)

    def _is_within_bounds(self, number: float) -> bool:
        if not self.bounds:
            return True
        if self.bounds[0] in "<>":
            sign, limit = self.bounds.split()
            return _COMPARE[sign](number, float(limit))
        low, high = map(float, self.bounds[1:-1].split(","))
        ends = (low,) * (self.bounds[0] == "[") + (high,) * (self.bounds[-1] == "]")
        return low < number < high or number in ends


def setting(default: Any, sentence: str, bounds: str = "", set_by: str = "") -> Any:
    """Declares a setting of this package; `set_by` is the method that takes it."""
    return Setting(default, sentence, bounds, set_by)


def rllib_setting(default: Any, sentence: str, bounds: str = "") -> Any:
    """Declares our default of a setting that RLlib has, and sets by its own method."""
    return Setting(default, sentence, bounds, RLLIB)
