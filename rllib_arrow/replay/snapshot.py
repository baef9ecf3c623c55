"""Replay snapshots on disk: a manifest, and segment files that are never changed.

A save writes the chunks that are not there yet into one new segment and then replaces
the manifest, so whatever happens before that last step leaves the earlier snapshot
whole. Chunks are known by their checksum. A segment of which more than half is not
needed any more is emptied by writing the rest of it again.
"""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from rllib_arrow.errors import UserError
from rllib_arrow.files import (
    TEMPORARY,
    digest_of,
    replacing,
    with_header,
    without_header,
    write_aside,
)
from rllib_arrow.replay.store import Record

MANIFEST = "manifest"
_FORMAT = "rllib_arrow replay snapshot 1"
_SEGMENT = re.compile(rf"segment-(\d{{6,}})({re.escape(TEMPORARY)})?")


class SnapshotError(UserError):
    """A file of a snapshot is missing, damaged, or belongs to something else."""


class DamagedSnapshotError(SnapshotError):
    """A file of a snapshot was read, and is not what was saved."""


def save(path: str | os.PathLike, state: dict[str, Any]) -> None:
    """Writes a snapshot into the directory `path`.

    Args:
        path: Made if need be. If it holds a snapshot, only chunks that are new since
            then are written, and the earlier one is valid until this one is complete.
        state: `records` are the stored chunks, `meta` everything else, fit for JSON.

    Raises:
        OSError: Naming the file, if it cannot be written.
    """
    root, records = Path(path), state["records"]
    root.mkdir(parents=True, exist_ok=True)
    places = _reusable_places(root, {record.digest for record in records})
    new = [record for record in records if record.digest not in places]
    if new:
        places |= _write_segment(_next_segment(root), new)
    segments = sorted({name for name, _ in places.values()})
    sizes = {name: (root / name).stat().st_size for name in segments}
    body = {
        "meta": state["meta"],
        "segments": sizes,
        "chunks": [
            [r.serial, r.task, r.digest, len(r.data), *places[r.digest]]
            for r in records
        ],
    }
    text = json.dumps(body, separators=(",", ":")).encode()
    write_aside(root / MANIFEST, with_header(_FORMAT, text))
    _remove_unused(root, sizes)


def load(path: str | os.PathLike) -> dict[str, Any]:
    """Returns the state that was saved.

    Every chunk is read straight into the memory where it stays.

    Raises:
        SnapshotError: Naming the file that is missing or damaged.
    """
    root = Path(path)
    body = _read_manifest(root)
    contents = defaultdict(list)
    for serial, task, digest, size, name, offset in body["chunks"]:
        contents[name].append((offset, size, digest, serial, task))
    records = []
    for name in sorted(contents):
        records += _read_segment(root / name, body["segments"][name], contents[name])
    return {
        "meta": body["meta"],
        "records": sorted(records, key=lambda record: record.serial),
    }


def _read_segment(path: Path, size: int, contents: list[tuple]) -> Iterator[Record]:
    try:
        with open(path, "rb") as file:
            found = os.fstat(file.fileno()).st_size
            if found != size:
                raise DamagedSnapshotError(
                    f"{path} has {found} bytes instead of {size}: the snapshot is "
                    "damaged; use another one."
                )
            for offset, length, digest, serial, task in sorted(contents):
                file.seek(offset)
                data = file.read(length)
                if digest_of(data) != digest:
                    raise DamagedSnapshotError(
                        f"{path} does not match its checksum at byte {offset}: the "
                        "snapshot is damaged; use another one."
                    )
                yield Record(data, digest, serial, task)
    except OSError as error:
        raise SnapshotError(
            f"{path} cannot be read ({error.strerror}): the snapshot is not whole; use "
            "another one."
        ) from None


def _read_manifest(root: Path) -> dict[str, Any]:
    path = root / MANIFEST
    try:
        content = path.read_bytes()
    except OSError as error:
        raise SnapshotError(
            f"{path} cannot be read ({error.strerror}): {root} is not a replay "
            "snapshot."
        ) from None
    if not content.startswith(_FORMAT.encode() + b" "):
        raise SnapshotError(f'{path} is not a "{_FORMAT}" file.')
    text = without_header(_FORMAT, content)
    if text is None:
        raise DamagedSnapshotError(
            f"{path} does not match its checksum: the snapshot is damaged; use "
            "another one."
        )
    return json.loads(text)


def _reusable_places(root: Path, wanted: set[str]) -> dict[str, tuple[str, int]]:
    """Returns where wanted chunks already lie, by checksum, as (segment, offset).

    Segments of the wrong size and segments that are mostly garbage do not count, so
    that their chunks are written again.
    """
    try:
        body = _read_manifest(root)
    except SnapshotError:
        return {}
    places, used = {}, defaultdict(int)
    for _, _, digest, size, name, offset in body["chunks"]:
        if digest in wanted and digest not in places:
            places[digest] = (name, offset)
            used[name] += size
    kept = set()
    for name, size in body["segments"].items():
        with suppress(FileNotFoundError):
            if (root / name).stat().st_size == size <= 2 * used[name]:
                kept.add(name)
    return {digest: place for digest, place in places.items() if place[0] in kept}


def _next_segment(root: Path) -> Path:
    """Returns a name that no segment has, not even one of an unfinished save."""
    taken = [int(m[1]) for f in root.iterdir() if (m := _SEGMENT.fullmatch(f.name))]
    return root / f"segment-{max(taken, default=0) + 1:06d}"


def _write_segment(path: Path, records: list[Record]) -> dict[str, tuple[str, int]]:
    places, offset = {}, 0
    with replacing(path) as file:
        for record in records:
            if record.digest not in places:
                file.write(record.data)
                places[record.digest] = (path.name, offset)
                offset += len(record.data)
    return places


def _remove_unused(root: Path, used: dict[str, int]) -> None:
    for file in root.iterdir():
        if _SEGMENT.fullmatch(file.name) and file.name not in used:
            file.unlink()
