"""A lock on a directory that at most one process works in at a time."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from rllib_arrow.errors import UserError

LOCK = ".lock"


@contextmanager
def locked(
    directory: str | os.PathLike,
    tell: Callable[[str], None] = print,
    *,
    name: str = LOCK,
    busy: str = "another run is at work there",
    inherited: bool = False,
) -> Iterator[int]:
    """Holds the directory's lock; yields its file descriptor.

    The system frees the lock when its process ends, however it ends, so the lock of a
    dead process is taken over, with a line. The processes of another machine cannot be
    seen from here: its lock is believed until somebody removes the file.

    Args:
        directory: Made if it is missing, and removed again if it stays empty.
        tell: Takes a line for the user.
        name: Of the file, which says who holds the lock: host, pid, start time.
        busy: What a second process is told, with the name of the holder.
        inherited: Whether processes of this one inherit the descriptor and thereby the
            lock; then the file stays, for them.
    """
    directory = Path(directory)
    made = [path for path in (directory, *directory.parents) if not path.exists()]
    file = directory / name
    try:
        descriptor = _open_locked(file, busy)
        try:
            _sign(descriptor, file, busy, tell)
            try:
                yield descriptor
            finally:
                if inherited:
                    os.ftruncate(descriptor, 0)
                else:
                    file.unlink(missing_ok=True)
        finally:
            os.close(descriptor)
    finally:
        with suppress(OSError):  # until the first that holds something
            for path in made:
                path.rmdir()


def _open_locked(file: Path, busy: str) -> int:
    """Returns a descriptor of the file that has the system's lock on it."""
    while True:
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            descriptor = os.open(file, os.O_RDWR | os.O_CREAT, 0o644)
        except FileNotFoundError:
            continue  # a holder that ended has removed the empty directory
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = _shown(_read(descriptor))
            os.close(descriptor)
            raise UserError(f"{file.parent}: {busy}: {holder}") from None
        except OSError as error:
            if not _read(descriptor):  # else somebody's who got his lock
                file.unlink(missing_ok=True)
            os.close(descriptor)
            problem = f"its file system cannot lock files ({error.strerror})"
            remedy = "use another, or mount it with locks"
            raise UserError(f"{file.parent}: {problem}: {remedy}") from None
        # Between opening and locking, the holder may have removed the file.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(descriptor), os.stat(file)):
                return descriptor
        os.close(descriptor)


def _sign(descriptor: int, file: Path, busy: str, tell: Callable[[str], None]) -> None:
    """Writes who holds the lock now, having looked at who held it before."""
    before = _read(descriptor)
    if before and before.get("host") != socket.gethostname():
        remedy = f"if it is not at work any more, remove {file}"
        raise UserError(f"{file.parent}: {busy}: {_shown(before)}; {remedy}")
    if before:
        tell(f"{file.parent}: took over the lock of {_shown(before)}, which is gone")
    started = time.strftime("%Y-%m-%d %H:%M:%S %z")
    mine = {"host": socket.gethostname(), "pid": os.getpid(), "started": started}
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, json.dumps(mine).encode(), 0)


def _read(descriptor: int) -> dict[str, Any]:
    """Returns who signed the file; {} if nobody has, or not to the end."""
    try:
        content = json.loads(os.pread(descriptor, 4096, 0))
    except ValueError:
        return {}
    return content if isinstance(content, dict) else {}


def _shown(holder: dict[str, Any]) -> str:
    if not holder:
        return "a process that has just begun"
    fields = (holder.get(key, "?") for key in ("pid", "host", "started"))
    return "process {} on {}, started {}".format(*fields)
