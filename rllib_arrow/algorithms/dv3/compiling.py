"""Whether a run compiles its updates."""

from __future__ import annotations

from typing import Any

from rllib_arrow.errors import UserError
from rllib_arrow.models.native.build import find_compiler

# Compiling takes about 15 s of a core, or 4 s where the code is kept, and an update of
# the micro size then takes 19 ms less: 800 updates win the wait back, and at twice as
# many there is something to win for a first run too.
WORTH_UPDATES = 2_000


def is_worth_compiling(config: Any) -> bool:
    """Returns whether the whole curriculum has enough updates to win back the wait."""
    if not config.curriculum:
        return False
    epochs = config.curriculum_object().total_epochs
    return config.minibatches().count * epochs >= WORTH_UPDATES


def wants_compiled(config: Any) -> bool:
    """Returns what `use_compile` comes to where there is a compiler."""
    if config.use_compile == "auto":
        return is_worth_compiling(config)
    return config.use_compile


def require_compiler(why: str) -> None:
    """Raises if there is no compiler; `why` says who asks for one."""
    if find_compiler() is None:
        raise UserError(
            f"{why}, but there is no C++ compiler (CXX or g++, and Python.h) here: "
            "install one."
        )
