"""Reads experiments: strict YAML, `extends`, and settings from the command line."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterable
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any

import yaml

from rllib_arrow.errors import UserError
from rllib_arrow.experiments.yaml_settings import is_space
from rllib_arrow.files import check_regular
from rllib_arrow.settings import brief, spells_number

MAX_BYTES = 2**20  # of a file; the longest example has three thousand
MAX_NODES = 100_000  # values in it


@dataclass
class MergedBlock:
    """An experiment with all it extends, and the file or option behind each key."""

    file: str
    name: str
    block: dict[str, Any]
    origins: dict[str, str] = field(default_factory=dict)

    def origin_of(self, key: str) -> str:
        """Returns where the key, a key below it, or a parent of it was set."""
        below = {o for k, o in self.origins.items() if f"{k}.".startswith(f"{key}.")}
        if len(below) == 1:
            return below.pop()
        while key and key not in self.origins:
            key = key.rpartition(".")[0]
        return self.origins.get(key, self.file)


class _StrictLoader(yaml.SafeLoader):
    """Refuses a key that occurs twice, of which YAML would silently keep the last."""


def _construct_mapping(loader: _StrictLoader, node: yaml.MappingNode) -> dict:
    seen = set()
    for key, _ in node.value:
        line, tag = key.start_mark.line + 1, key.tag.rpartition(":")[2]
        if tag not in ("str", "merge"):
            raise UserError(f"line {line}: key {key.value!r} must be a text")
        if key.value in seen:
            raise UserError(f"line {line}: key {key.value!r} occurs twice")
        seen.add(key.value)
    loader.flatten_mapping(node)
    return yaml.SafeLoader.construct_mapping(loader, node, deep=True)


_StrictLoader.add_constructor(
    yaml.resolver.BaseResolver.DEFAULT_MAPPING_TAG, _construct_mapping
)


def parse_yaml(text: str, where: str) -> Any:
    """Returns the data in the text; `where` names the text in an error."""
    try:
        loader = _StrictLoader(text)  # a SafeLoader: data only, no objects
        node = loader.get_single_node()
        if node is None:
            return None
        if _expanded(node, {}) > MAX_NODES:
            raise UserError(f"aliases (*name) stand for more than {MAX_NODES:,} values")
        return loader.construct_document(node)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        line = f", line {mark.line + 1}" if mark else ""
        problem = getattr(error, "problem", None) or "unreadable characters"
        raise UserError(f"{where}{line}: not valid YAML: {problem}") from error
    except UserError as error:
        raise UserError(f"{where}, {error}") from error
    except (ValueError, RecursionError) as error:
        raise UserError(f"{where}: not valid YAML: {error}") from error


def _expanded(node: yaml.Node, known: dict[int, float]) -> float:
    """Returns how many values a node stands for with all its aliases written out."""
    if id(node) not in known:
        known[id(node)] = math.inf  # until it is known: an alias of itself is endless
        inner = node.value if isinstance(node, yaml.CollectionNode) else []
        flat = chain(*inner) if isinstance(node, yaml.MappingNode) else inner
        known[id(node)] = 1 + sum(_expanded(child, known) for child in flat)
    return known[id(node)]


def read_merged(file: Path, below: tuple[Path, ...] = ()) -> MergedBlock:
    """Returns the block in the file, laid over those that it extends."""
    if file.resolve() in below:
        names = " -> ".join(path.name for path in (*below, file))
        raise UserError(f"{file}: extends itself: {names}")
    name, block = read_block(file)
    merged = MergedBlock(str(file), name, {})
    for base in _bases(file, block.pop("extends", [])):
        parent = read_merged(base, (*below, file.resolve()))
        _merge(merged.block, parent.block)
        merged.origins.update(parent.origins)
    _merge(merged.block, block)
    _note_origins(merged.origins, block, str(file))
    return merged


def read_block(file: Path) -> tuple[str, dict[str, Any]]:
    """Returns the experiment's name and what this file alone says of it."""
    try:
        check_regular(file, MAX_BYTES, "an experiment")
        text = file.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{file}: not a text file in UTF-8") from error
    except OSError as error:
        raise UserError(f"{file}: cannot be read: {error.strerror}") from error
    data = parse_yaml(text, str(file))
    if not isinstance(data, dict) or len(data) != 1:
        found = f"{len(data)} names" if isinstance(data, dict) else brief(data)
        form = "one experiment, name: {run: ..., config: ...}"
        raise UserError(f"{file}: must hold {form}, but holds {found}")
    ((name, block),) = data.items()
    if not isinstance(block, dict):
        raise UserError(f"{file}: {name} = {brief(block)}: must be a mapping")
    return name, block


def _bases(file: Path, extends: Any) -> list[Path]:
    names = [extends] if isinstance(extends, str) else extends
    if not isinstance(names, list) or not all(isinstance(n, str) for n in names):
        problem = "must be a file name or a list of them"
        raise UserError(f"{file}: extends = {brief(extends)}: {problem}")
    bases = [file.parent / name for name in names]
    for base, name in zip(bases, names, strict=True):
        if not base.is_file():
            raise UserError(f"{file}: extends = {name!r}: no such file ({base})")
    return bases


def _merge(below: dict[str, Any], above: dict[str, Any]) -> None:
    """Lays one mapping over another; a search space is replaced whole."""
    for key, value in above.items():
        old = below.get(key)
        both = isinstance(old, dict) and isinstance(value, dict)
        if both and not (is_space(old) or is_space(value)):
            _merge(old, value)
        else:
            below[key] = copy.deepcopy(value)


def _note_origins(
    origins: dict[str, str], value: Any, origin: str, key: str = ""
) -> None:
    if key:
        origins[key] = origin
    if isinstance(value, dict):
        for name, inner in value.items():
            _note_origins(origins, inner, origin, f"{key}.{name}" if key else name)


def override(
    merged: MergedBlock, text: str, option: str, blocks: Iterable[str]
) -> None:
    """Lays `key.path=value`, as given with the option, over the block.

    A path that does not start with one of `blocks` is one of `config`.
    """
    path, equals, value = text.partition("=")
    names = path.strip().split(".")
    if not equals or not all(names):
        raise UserError(f"{option} {text!r}: must be KEY=VALUE, as in a.b=3")
    if names[0] not in blocks:
        names.insert(0, "config")
    origin = f"{option} {text}"
    change: Any = parse_yaml(value, origin)
    if spells_number(change):
        change = float(change)
    for name in reversed(names):
        change = {name: change}
    _merge(merged.block, change)
    merged.origins[".".join(names)] = origin
