"""The parts of the package import one another in one direction only."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

PACKAGE = Path(__file__).parents[1] / "rllib_arrow"

# Each may import those in the lines above it, and none beside or below it.
ORDER = (
    ("errors", "seeding", "ray_private"),
    ("files", "lock"),
    ("settings",),
    ("declared_settings",),
    ("envs",),
    ("curriculum",),
    ("metrics", "models", "replay"),
    ("runs",),
    ("checkpoints", "evaluation", "inside", "reports"),
    ("algorithms",),
    ("experiments",),
)
LEVEL = {part: level for level, parts in enumerate(ORDER) for part in parts}


def part_of(module: str) -> str | None:
    """Returns the part of `rllib_arrow.part...`, or None for anything else."""
    package, _, rest = module.partition(".")
    part = rest.partition(".")[0]
    is_part = (PACKAGE / part).is_dir() or (PACKAGE / f"{part}.py").is_file()
    return part if package == PACKAGE.name and part and is_part else None


def imported(file: Path) -> Iterator[str]:
    """Yields the modules a file imports, at its top or late, also only for types."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{file}: imports are absolute"
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def imports_of_parts() -> set[tuple[str, str, str]]:
    """Returns (part, imported part, file) for every import between parts."""
    found = set()
    for file in PACKAGE.rglob("*.py"):
        name = file.relative_to(PACKAGE).with_suffix("")
        for module in imported(file):
            part = part_of(module)
            if part is not None and part != name.parts[0]:
                found.add((name.parts[0], part, str(name)))
    return found


def test_parts_along_the_journey_import_in_one_direction():
    wrong = {
        (file, part)
        for mine, part, file in imports_of_parts()
        if mine in LEVEL and LEVEL.get(part, len(ORDER)) >= LEVEL[mine]
    }
    assert not wrong


def test_no_two_parts_import_each_other():
    pairs = {(a, b) for a, b, _ in imports_of_parts() if b != "__init__"}
    assert not {pair for pair in pairs if pair[::-1] in pairs}
