"""Random configurations on a restore: each goes on to the byte or is refused in a line.

`restore_cases.py` says which settings do what. What a run comes to after a restore is
compared with a run that was configured so from the start and never interrupted.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import ray

from rllib_arrow.algorithms.continual import ContinualAlgorithm
from rllib_arrow.checkpoints.made_with import check_made_with, write_made_with
from rllib_arrow.errors import UserError
from rllib_arrow.replay import snapshot
from rllib_arrow.replay.journal import start_journaled_replay
from rllib_arrow.settings import brief
from tests.algorithms.tiny import METHODS, digest, scores, tiny_config, train
from tests.checkpoints.restore_cases import (
    FEWER_SCORES,
    FINISHED,
    LEARNS,
    MAY_LEARN,
    OTHER_SCORES,
    PROCESSES,
    SAME,
    STAYS,
    TABLES,
    Changes,
    configured,
    draw,
    is_in,
    untold,
)

# How many cases are drawn from which tables, for each method.
MANY = (
    ((SAME,), 40),
    ((SAME, FEWER_SCORES), 20),
    ((SAME, OTHER_SCORES), 15),
    ((SAME, OTHER_SCORES, LEARNS, MAY_LEARN), 10),
    ((LEARNS,), 15),
    ((STAYS, SAME, LEARNS), 25),
    ((STAYS,), 20),
    ((PROCESSES, SAME), 6),
)
# What the run that is compared with has from the start.
KEPT = ("curriculum.cycles", "curriculum.epochs_per_task", "label_settings")
AHEAD = 2  # epochs after the restore, if the curriculum has as many


def test_every_value_in_the_tables_is_another_than_the_run_had():
    for method in METHODS:
        config = tiny_config(method)
        for name in METHODS[method].declared_settings.keys() - {"curriculum"}:
            values = [value for table in TABLES for value in table.get(name, ())]
            had = getattr(config, name)
            same = [v for v in values if v == had and type(v) is type(had)]
            assert not same, name


@pytest.mark.parametrize("method", METHODS)
def test_a_setting_that_the_tables_do_not_know_is_taken_or_refused(method, tmp_path):
    config = tiny_config(method)
    write_made_with(tmp_path, config, config.curriculum_object(), FINISHED)
    for name, values in untold(method).items():
        try:
            check_made_with(tmp_path, configured(method, {name: values[0]}))
        except UserError as error:
            assert str(error).startswith(f"{name} ({brief(values[0])}) must stay ")


def test_random_configurations_are_taken_or_refused_in_one_line(tmp_path):
    rng, refused, taken = random.Random(8), 0, 0
    made = {}
    for method in METHODS:
        config = tiny_config(method)
        made[method] = tmp_path / method
        made[method].mkdir()
        write_made_with(made[method], config, config.curriculum_object(), FINISHED)
    for _ in range(1000):
        method = rng.choice(sorted(METHODS))
        changes = draw(rng, method, (STAYS, SAME, LEARNS, OTHER_SCORES, PROCESSES))
        config = configured(method, changes)
        if not is_in(STAYS, changes):
            taken += 1
            check_made_with(made[method], config)
            continue
        refused += 1
        with pytest.raises(UserError) as caught:
            check_made_with(made[method], config)
        names_both_values(str(caught.value), changes, str(made[method]))
    assert refused > 300 and taken > 300


def names_both_values(line: str, changes: Changes, path: str) -> None:
    assert "\n" not in line
    if "must be one integer, or one for each" in line:
        return  # a curriculum that is wrong in itself, with more lengths than tasks
    assert path in line and "must stay" in line
    if line.startswith("curriculum plans"):
        assert "curriculum.epochs_per_task" in changes
        assert "breakout 1-2, space_invaders 3-3" in line, line
        return
    key = line.partition(" ")[0]
    assert line.startswith(f"{key} ({brief(changes[key])}) must stay "), line
    assert is_in(STAYS, {key: changes[key]}), line


class Outcome(NamedTuple):
    """All that a run has come to."""

    learnt: str
    remembered: list[tuple]
    rows: list[str]  # of evaluations.csv

    @classmethod
    def of(cls, algorithm: ContinualAlgorithm) -> Outcome:
        algorithm.evaluator.finish()
        ray.get(algorithm.replay.save.remote(f"{algorithm.logdir}/outcome"))
        records = snapshot.load(f"{algorithm.logdir}/outcome")["records"]
        chunks = [(r.serial, r.task, r.digest) for r in records]
        return cls(digest(algorithm), chunks, scores(algorithm).splitlines())

    def rows_until(self, epoch: int) -> list[str]:
        at = self.rows[0].split(",").index("epoch")
        return [r for r in self.rows[1:] if int(r.split(",")[at]) <= epoch]


@pytest.fixture(scope="module")
def one_replay(ray_two_cpus, tmp_path_factory) -> Iterator[None]:
    """Gives every algorithm the same replay actor, made anew: a process takes seconds.

    So the algorithms of this module live one after the other.
    """
    journal = tmp_path_factory.mktemp("replay")
    actor = start_journaled_replay(tiny_config().replay_settings(), journal)
    kill = ray.kill

    def start(settings: dict[str, Any], journal: Any, resources: Any = None) -> Any:
        def remake(replay: Any) -> None:
            replay.__init__(settings, str(journal))

        ray.get(actor.__ray_call__.remote(remake))
        return actor

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("rllib_arrow.algorithms.continual.start_journaled_replay", start)
        patch.setattr(ray, "kill", lambda a, **k: None if a is actor else kill(a, **k))
        yield
    ray.kill(actor)


def run(config: Any, work: Callable[[ContinualAlgorithm], Any]) -> Any:
    """Returns what the work gives on an algorithm, which is stopped afterwards."""
    algorithm = config.build_algo()
    try:
        return work(algorithm)
    finally:
        algorithm.stop()


@pytest.fixture(scope="module")
def saved(one_replay, tmp_path_factory) -> Callable[[str], Path]:
    """Returns a method's checkpoint after three epochs; each is made once."""

    @cache
    def of(method: str) -> Path:
        def save(algorithm: ContinualAlgorithm) -> Path:
            train(algorithm, FINISHED)
            path = tmp_path_factory.mktemp("saved") / "checkpoint"
            return Path(algorithm.save_to_path(path))

        return run(tiny_config(method), save)

    return of


@pytest.fixture(scope="module")
def uninterrupted(one_replay) -> Callable[[str, Changes], Outcome]:
    """Returns what comes of a run that was planned and named so from the start."""
    known: dict[str, Outcome] = {}

    def of(method: str, changes: Changes) -> Outcome:
        kept = {k: v for k, v in changes.items() if k in KEPT}
        key = f"{method} {sorted(kept.items())}"
        if key not in known:
            config = configured(method, kept)
            config.use_compile = False  # as in the run that was saved
            known[key] = run(config, go_on)
        return known[key]

    return of


def go_on(algorithm: ContinualAlgorithm) -> Outcome:
    while algorithm.iteration < FINISHED + AHEAD and algorithm.task is not None:
        train(algorithm, 1)
    return Outcome.of(algorithm)


@pytest.fixture
def try_restore(saved, uninterrupted) -> Callable[[str, Changes], str]:
    """Restores with changes, checks what must come of it, and returns what that is."""

    def refuse(algorithm: ContinualAlgorithm, path: Path, changes: Changes) -> str:
        before = digest(algorithm)
        with pytest.raises(UserError) as caught:
            algorithm.restore_from_path(path)
        names_both_values(str(caught.value), changes, str(path))
        assert digest(algorithm) == before and algorithm.iteration == 0
        assert ray.get(algorithm.replay.stats.remote())["chunks"] == 0
        return "refused"

    def of(method: str, changes: Changes) -> str:
        path, config = saved(method), configured(method, changes)
        try:
            config.copy(copy_frozen=False).validate()
        except UserError as error:  # changes that do not go together
            assert "\n" not in str(error)
            return "refused"
        if is_in(STAYS, changes):
            return run(config, lambda algorithm: refuse(algorithm, path, changes))

        def restore(algorithm: ContinualAlgorithm) -> Outcome:
            algorithm.restore_from_path(path)
            assert algorithm.iteration == FINISHED
            return go_on(algorithm)

        now = run(config, restore)
        if is_in(LEARNS, changes):  # nothing to compare with but itself
            assert run(configured(method, changes), restore) == now, changes
        return compare(now, uninterrupted(method, changes), changes)

    return of


def compare(now: Outcome, truth: Outcome, changes: Changes) -> str:
    """Raises if a run that went on with changes is not what these make of it."""
    assert now.rows_until(FINISHED) == truth.rows_until(FINISHED), changes
    if is_in(MAY_LEARN, changes) and not is_in(LEARNS, changes):
        return "goes on"
    if is_in(LEARNS, changes):
        assert now.learnt != truth.learnt, changes
        return "learns otherwise"
    assert now.learnt == truth.learnt, changes
    assert now.remembered == truth.remembered, changes
    if is_in(OTHER_SCORES, changes):
        assert now.rows[0] == truth.rows[0]
        return "learns to the byte"
    if is_in(FEWER_SCORES, changes):
        assert set(now.rows) <= set(truth.rows), changes
    else:
        assert now.rows == truth.rows, changes
    return "to the byte"


@pytest.mark.parametrize("method", METHODS)
def test_a_restore_with_changes_goes_on_to_the_byte_or_is_refused(method, try_restore):
    rng = random.Random(method)
    for tables in ((STAYS, SAME), (SAME,), (SAME, FEWER_SCORES, OTHER_SCORES)):
        try_restore(method, draw(rng, method, tables))
    if method == "ARROW":
        more = {"curriculum.cycles": 2, "replay_prefetch": 1}
        assert try_restore(method, more) == "to the byte"


@pytest.mark.slow
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("method", METHODS)
def test_hundreds_of_restores_go_on_to_the_byte_or_are_refused(method, try_restore):
    rng, came_of_it = random.Random(f"many {method}"), Counter()
    for tables, count in MANY:
        for _ in range(count):
            came_of_it[try_restore(method, draw(rng, method, tables))] += 1
    print(method, dict(came_of_it))
    certain = ("to the byte", "learns to the byte", "refused")
    assert sum(came_of_it[outcome] for outcome in certain) >= 100
