"""Whether a run compiles its updates, and where the compiled code is kept."""

from __future__ import annotations

import os
import shutil
import sysconfig
from pathlib import Path
from typing import Any

from rllib_arrow.errors import UserError

# Compiling takes about 65 s of a core, or 10 s where the code is kept, and an update of
# the micro size then takes 12 ms less: 5,500 updates win the wait back, and at twice as
# many there is something to win for a first run too.
WORTH_UPDATES = 10_000


def find_compiler() -> str | None:
    """Returns the C++ compiler that `torch.compile` would use, None if there is none.

    Python's header files count as part of it.
    """
    headers = Path(sysconfig.get_path("include"), "Python.h")
    found = shutil.which(os.environ.get("CXX", "g++"))
    return found if headers.exists() else None


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


def keep_compiled_code() -> None:
    """Has compiled code kept between runs in the user's cache directory.

    Left alone where TORCHINDUCTOR_CACHE_DIR says otherwise, and where there is no such
    directory: torch then takes one for temporary files.
    """
    if "TORCHINDUCTOR_CACHE_DIR" in os.environ:
        return
    try:
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(cache, "rllib_arrow", "compiled")
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # no home, or one that cannot be written
        return
    os.environ["TORCHINDUCTOR_CACHE_DIR"] = folder.as_posix()
