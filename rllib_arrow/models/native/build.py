"""Compiles the C++ code of this folder, once for each machine, and calls it."""

from __future__ import annotations

import ctypes
import hashlib
import logging
import os
import platform
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import torch
from torch import Tensor

from rllib_arrow.errors import UserError

FOLDER = Path(__file__).parent
SOURCES = sorted(each.name for each in FOLDER.glob("*.[ch]pp"))
FLAGS = (
    *("-O3", "-march=native", "-std=c++17", "-shared", "-fPIC", "-pthread"),
    *("-fno-math-errno", "-fno-trapping-math"),
    "-fno-tree-loop-distribute-patterns",  # short copies are not worth a call
)
CODE = "TORCHINDUCTOR_CACHE_DIR"
# Multiplications of a call from which on a second thread is worth its start.
WORTH_THREAD = 100_000_000


def find_compiler() -> str | None:
    """Returns the C++ compiler that `torch.compile` would use, None if there is none.

    Python's header files count as part of it.
    """
    headers = Path(sysconfig.get_path("include"), "Python.h")
    found = shutil.which(os.environ.get("CXX", "g++"))
    return found if headers.exists() else None


def is_buildable() -> bool:
    """Returns whether the code is there or can be compiled; says so if it cannot."""
    if find_compiler() is None:
        return False
    try:
        library()
    except (UserError, OSError) as error:
        logging.getLogger(__name__).warning("Updates are not compiled: %s", error)
        return False
    return True


def keep_compiled_code() -> None:
    """Has compiled code kept between runs in the user's cache directory.

    Left alone where TORCHINDUCTOR_CACHE_DIR says otherwise, and where there is no such
    directory: torch then takes one for temporary files.
    """
    if CODE in os.environ:
        return
    try:
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
        folder = Path(cache, "rllib_arrow", "compiled")
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, RuntimeError):  # no home, or one that cannot be written
        return
    os.environ[CODE] = folder.as_posix()


@cache
def library() -> ctypes.CDLL:
    """Returns the compiled code, built if this machine has not built it before."""
    compiler = find_compiler()
    version = subprocess.run([compiler, "--version"], capture_output=True).stdout
    texts = [(FOLDER / name).read_bytes() for name in SOURCES]
    made_of = (*texts, repr(FLAGS).encode(), version, _processor())
    name = hashlib.sha256(b"\0".join(made_of)).hexdigest()[:20]
    built = _folder() / f"native_{name}.so"
    if not built.exists():
        _compile(compiler, built)
    return ctypes.CDLL(str(built))


def _compile(compiler: str, built: Path) -> None:
    """Makes the file whole or not at all, also beside others who make it."""
    with tempfile.TemporaryDirectory(dir=built.parent) as aside:
        target = Path(aside, built.name)
        sources = [str(FOLDER / name) for name in SOURCES if name.endswith("cpp")]
        command = [compiler, *FLAGS, *sources, "-o", str(target)]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise UserError(
                f"{compiler} could not compile {FOLDER}: set use_compile to false. "
                f"It says: {' '.join(done.stderr.split())[:500]}"
            )
        os.replace(target, built)


def _folder() -> Path:
    """Returns where compiled code is kept, or a new directory if nowhere."""
    keep_compiled_code()
    if CODE not in os.environ:
        return Path(tempfile.mkdtemp(prefix="rllib_arrow_"))
    folder = Path(os.environ[CODE])
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _processor() -> bytes:
    """Tells processors apart whose code differs."""
    try:
        lines = Path("/proc/cpuinfo").read_bytes().splitlines()
    except OSError:
        lines = []
    able = [line for line in lines if line.startswith((b"flags", b"Features"))]
    return able[0] if able else platform.platform().encode()


def threads_for(multiplications: int) -> int:
    """Returns how many threads are worth their start."""
    return torch.get_num_threads() if multiplications > WORTH_THREAD else 1


def pointers(tensors: Iterable[Tensor | None]) -> ctypes.Array:
    """Returns where contiguous tensors of float32 are; null for None."""
    places = [None if tensor is None else pointer(tensor) for tensor in tensors]
    return (ctypes.c_void_p * len(places))(*places)


def pointer(tensor: Tensor) -> int:
    """Returns where a contiguous tensor of numbers is."""
    if not tensor.is_contiguous() or tensor.dtype not in (torch.float32, torch.int64):
        raise ValueError(f"{tensor.shape} of {tensor.dtype} is not laid out for C++.")
    return tensor.data_ptr()
