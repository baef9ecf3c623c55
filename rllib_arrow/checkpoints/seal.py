"""A checkpoint's seal: the checksums of its files.

RLlib writes a checkpoint file by file, Tune copies it file by file, and neither looks
back. With a seal, a file that is missing or was changed is found before anything is
restored.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path

from rllib_arrow.errors import UserError
from rllib_arrow.files import digest_of, with_header, without_header, write_aside
from rllib_arrow.ray_private import TUNE_CHECKPOINT
from rllib_arrow.replay.snapshot import MANIFEST

SEAL = "seal"
BROKEN = "seal.broken"
REPLAY = "replay"  # the folder with the replay snapshot
_FORMAT = "rllib_arrow checkpoint 1"


class CheckpointError(UserError):
    """The directory is not a whole checkpoint of this package, or cannot be read."""


class DamagedCheckpointError(CheckpointError):
    """A file of the checkpoint was read, and is not what was saved."""


def seal(path: str | os.PathLike) -> None:
    """Writes down the checksums of all files of a checkpoint that is complete.

    Of the replay snapshot the manifest is enough: it has the checksums of the rest.
    """
    root = Path(path)
    for name in (SEAL, BROKEN):
        (root / name).unlink(missing_ok=True)
    files = (file for file in sorted(root.rglob("*")) if file.is_file())
    names = [file.relative_to(root).as_posix() for file in files]
    manifest = f"{REPLAY}/{MANIFEST}"
    if manifest not in names:
        raise CheckpointError(f"{root / manifest} was not written.")
    sums = {
        name: digest_of((root / name).read_bytes())
        for name in names
        if name == manifest or not name.startswith(f"{REPLAY}/")
    }
    text = json.dumps(sums, indent=1).encode()
    write_aside(root / SEAL, with_header(_FORMAT, text))


def check_seal(path: str | os.PathLike, replay: bool = True) -> None:
    """Compares the files of a checkpoint with its seal; files added later may stay.

    Args:
        path: The checkpoint's directory.
        replay: Whether its replay is needed too.

    Raises:
        CheckpointError: Naming the file that is missing or cannot be read.
        DamagedCheckpointError: Naming the file that was changed.
    """
    root = Path(path)
    for name, digest in _read(root / SEAL).items():
        if name.startswith(f"{REPLAY}/") and not replay:
            continue
        try:
            content = (root / name).read_bytes()
        except OSError as error:
            raise CheckpointError(
                f"{root / name} cannot be read ({error.strerror}): the checkpoint is "
                "not whole; use another one."
            ) from None
        if digest_of(content) != digest:
            raise _damaged(root / name)


def break_seal(path: str | os.PathLike) -> None:
    """Marks a checkpoint as damaged: its seal gets another name, for people to see."""
    with suppress(OSError):  # never sealed, or a disk that cannot be written
        (Path(path) / SEAL).rename(Path(path) / BROKEN)


def older_checkpoints(path: str | os.PathLike) -> list[str]:
    """Returns the checkpoints that a run wrote before this one, newest first.

    Only those beside it that are numbered by Tune: any other folder's neighbours may
    belong to other runs.
    """
    path = Path(path)
    if not TUNE_CHECKPOINT.fullmatch(path.name):
        return []
    beside = (p for p in path.parent.iterdir() if TUNE_CHECKPOINT.fullmatch(p.name))
    return sorted((str(p) for p in beside if p.name < path.name), reverse=True)


def _read(file: Path) -> dict[str, str]:
    try:
        content = file.read_bytes()
    except OSError as error:
        raise CheckpointError(
            f"{file} cannot be read ({error.strerror}): {file.parent} is not a whole "
            "checkpoint; use another one, such as <run>/checkpoint_000009."
        ) from None
    text = without_header(_FORMAT, content)
    if text is None:
        raise _damaged(file)
    return json.loads(text)


def _damaged(file: Path) -> DamagedCheckpointError:
    return DamagedCheckpointError(
        f"{file} does not match its checksum: the checkpoint is damaged; use another "
        "one."
    )
