"""Files are written whole or not at all, and known by their checksums."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

from rllib_arrow.errors import UserError

if TYPE_CHECKING:
    from pyarrow import fs

TEMPORARY = ".tmp"  # how the name of an unfinished file ends


@contextmanager
def replacing(path: str | os.PathLike) -> Iterator[BinaryIO]:
    """Opens a file beside `path` that takes its place once it is safely on disk."""
    path = Path(path)
    aside = path.with_name(path.name + TEMPORARY)
    try:
        with open(aside, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(aside, path)
    except OSError as error:
        aside.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from error
    except BaseException:
        aside.unlink(missing_ok=True)
        raise


def write_aside(path: str | os.PathLike, content: str | bytes) -> None:
    """Replaces a local file, whose directory exists."""
    with replacing(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)


def write_aside_in(store: fs.FileSystem, path: str, content: bytes) -> None:
    """Replaces a file of a run's storage, which need not be a local disk."""
    aside = path + TEMPORARY
    with store.open_output_stream(aside) as stream:
        stream.write(content)
    store.move(aside, path)


def check_regular(path: Path, max_bytes: int, what: str = "a run's file") -> None:
    """Refuses what would be read without end: pipes, devices and huge files."""
    if not path.is_file():
        os.stat(path)  # a file that is missing is told by the system's own words
        raise UserError(f"{path}: must be a regular file, not a pipe or a device.")
    if (size := path.stat().st_size) > max_bytes:
        raise UserError(
            f"{path}: {size:,} bytes are more than the {max_bytes:,} that {what} may "
            "have."
        )


def digest_of(data: bytes) -> str:
    """Returns the checksum by which files, and what lies in them, are known."""
    return blake2b(data, digest_size=16).hexdigest()


def with_header(kind: str, text: bytes) -> bytes:
    """Returns a file's content: a line with its kind and its checksum, and the text."""
    return f"{kind} {digest_of(text)}\n".encode() + text


def without_header(kind: str, content: bytes) -> bytes | None:
    """Returns the text that `with_header` was given; None if it has changed since."""
    text = content.partition(b"\n")[2]
    return text if content == with_header(kind, text) else None
