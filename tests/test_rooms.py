"""The rooms of the package import one another in one direction only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "rllib_arrow"

# A room may import those in the lines above it, and none beside or below it.
ORDER = (
    ("errors", "seeding", "ray_private"),
    ("files", "lock"),
    ("settings",),
    ("declared_settings",),
    ("envs",),
    ("curriculum",),
    ("metrics", "models", "replay"),
    ("runs",),
    ("checkpoints", "evaluation", "reports"),
    ("algorithms",),
    ("experiments",),
)
LEVEL = {room: level for level, rooms in enumerate(ORDER) for room in rooms}


def room_of(module: str) -> str | None:
    """Returns the room of `rllib_arrow.room...`, or None for anything else."""
    package, _, rest = module.partition(".")
    room = rest.partition(".")[0]
    is_room = (PACKAGE / room).is_dir() or (PACKAGE / f"{room}.py").is_file()
    return room if package == PACKAGE.name and room and is_room else None


def imported(file: Path) -> Iterator[str]:
    """Yields the modules a file imports, at its top or late, also only for types."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are absolute"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imports_of_rooms() -> set[tuple[str, str, str]]:
    """Returns (room, imported room, file) for every import between rooms."""
    found = set()
    for file in PACKAGE.rglob("*.py"):
        name = file.relative_to(PACKAGE).with_suffix("")
        for module in imported(file):
            room = room_of(module)
            if room is not None and room != name.parts[0]:
                found.add((name.parts[0], room, str(name)))
    return found


def test_rooms_along_the_journey_import_in_one_direction():
    wrong = {
        (file, room)
        for mine, room, file in imports_of_rooms()
        if mine in LEVEL and LEVEL.get(room, len(ORDER)) >= LEVEL[mine]
    }
    assert not wrong


def test_no_two_rooms_import_each_other():
    pairs = {(a, b) for a, b, _ in imports_of_rooms() if b != "__init__"}
    assert not {pair for pair in pairs if pair[::-1] in pairs}
