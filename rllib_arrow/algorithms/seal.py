"""A checkpoint's seal: the checksums of all its files, written when they are there.

RLlib writes a checkpoint file by file and reads it back without a look at whether it is
whole. A save that died half-way has no seal, and a file that was changed does not match
it, so neither is taken for a checkpoint, and nothing of it is unpickled.
"""

from __future__ import annotations

import json
import os
from hashlib import blake2b
from pathlib import Path

from rllib_arrow.evaluation.score_table import write_atomically

SEAL = "seal"
# A replay snapshot has checksums of its own; it is large, and read as a stream.
OWN_CHECKS = "replay"
_FORMAT = "rllib_arrow checkpoint 1"


class CheckpointError(ValueError):
    """The directory is not a checkpoint of this package, or it is damaged."""


def seal(path: str | os.PathLike) -> None:
    """Notes the checksums of all files of a checkpoint."""
    root = Path(path)
    (root / SEAL).unlink(missing_ok=True)
    files = (file for file in sorted(root.rglob("*")) if file.is_file())
    names = [file.relative_to(root) for file in files]
    sums = {
        name.as_posix(): _digest((root / name).read_bytes())
        for name in names
        if name.parts[0] != OWN_CHECKS
    }
    text = json.dumps(sums, indent=1)
    write_atomically(root / SEAL, _header(text) + text)


def check_seal(path: str | os.PathLike) -> None:
    """Compares all files of a checkpoint with its seal; files added later may stay.

    Raises:
        CheckpointError: Naming the file that is missing or damaged.
    """
    root = Path(path)
    for name, digest in _read(root / SEAL).items():
        try:
            content = (root / name).read_bytes()
        except OSError as error:
            raise CheckpointError(
                f"{root / name} cannot be read ({error.strerror}): the checkpoint is "
                "not whole; use another one."
            ) from None
        if _digest(content) != digest:
            raise CheckpointError(
                f"{root / name} does not match its checksum: the checkpoint is "
                "damaged; use another one."
            )


def newest_first(path: str | os.PathLike) -> list[str]:
    """Returns the checkpoint's path and those of the run's older checkpoints."""
    path = Path(path)
    older = (p for p in path.parent.glob("checkpoint_*") if p.name < path.name)
    return [str(path), *sorted(map(str, older), reverse=True)]


def _read(file: Path) -> dict[str, str]:
    try:
        content = file.read_bytes().decode("utf-8", "replace")
    except OSError as error:
        raise CheckpointError(
            f"{file} cannot be read ({error.strerror}): {file.parent} is not a whole "
            "checkpoint; use another one, such as <run>/checkpoint_000009."
        ) from None
    text = content.partition("\n")[2]
    if content != _header(text) + text:
        raise CheckpointError(
            f"{file} does not match its checksum: the checkpoint is damaged; use "
            "another one."
        )
    return json.loads(text)


def _header(text: str) -> str:
    return f"{_FORMAT} {_digest(text.encode())}\n"


def _digest(content: bytes) -> str:
    return blake2b(content, digest_size=16).hexdigest()
