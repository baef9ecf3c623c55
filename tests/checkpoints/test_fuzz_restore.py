"""Random configurations on a restore: each goes on to the byte or is refused in a line.

The lists below say what may change independently of the code that decides it.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from rllib_arrow.checkpoints.made_with import check_made_with, write_made_with
from rllib_arrow.errors import UserError
from tests.algorithms.tiny import METHODS, digest, scores, tiny_config, train

FINISHED = 3  # epochs: two of the first task, one of the second

# Values that differ from those of `tiny_config`.
MUST_STAY = {
    "seed": (0, 1, 7, 2**31),
    "num_env_runners": (2, 3, 8),
    "num_envs_per_env_runner": (1, 3, 16),
    "rollout_fragment_length": (1, 39, 41, 4096),
    "env_options": ({"sticky": 0.5}, {"hold": 2}),
    "replay_capacity_chunks": (1, 15, 17, 1024),
    "replay_chunk_length": (8, 25, 512),
    "curriculum.tasks": (["space_invaders", "breakout"], ["breakout"], ["freeway"]),
    "curriculum.order": ("reversed",),
    "curriculum.epochs_per_task": (1, 3, 9, [1, 2], [3, 2]),
}
# These change nothing of what is learnt or scored before the old end of the run.
CHANGES_NOTHING = {
    "num_env_runners": (0, 1),
    "replay_prefetch": (1, 2, 9),
    "replay_max_bytes": (10**9, 10**12),
    "sample_timeout_s": (60.0, None),
    "evaluation_sample_timeout_s": (60.0, None),
    "max_steps_per_evaluated_episode": (50_000, 10**6),
    "curriculum.cycles": (2, 5),
    "curriculum.epochs_per_task": ([2, 3], [2, 50]),
}
CHANGES_LEARNING = {
    "gamma": (0.5, 0.9),
    "evaluation_interval": (2, None),
    "evaluation_duration": (1, 9),
    "num_envs_per_evaluation": (1, 3),
    "num_learners": (1, 2),
}


def configured(method: str, changes: dict[str, Any]) -> Any:
    curriculum = {
        key.partition(".")[2]: value
        for key, value in changes.items()
        if key.startswith("curriculum.")
    }
    config = tiny_config(method, **curriculum)
    for key, value in changes.items():
        if not key.startswith("curriculum."):
            setattr(config, key, value)
    return config


def draw(rng: random.Random, *tables: dict[str, tuple]) -> dict[str, Any]:
    """Returns one to four changes, each from one of the tables."""
    picks = [rng.choice(tables) for _ in range(rng.randint(1, 4))]
    return {(key := rng.choice(sorted(t))): rng.choice(t[key]) for t in picks}


def is_refused(changes: dict[str, Any]) -> bool:
    return any(value in MUST_STAY.get(key, ()) for key, value in changes.items())


def test_random_configurations_are_taken_or_refused_in_one_line(tmp_path):
    rng, refused, taken = random.Random(8), 0, 0
    made = {}
    for method in METHODS:
        config = tiny_config(method)
        made[method] = tmp_path / method
        made[method].mkdir()
        plan = config.curriculum_object()
        write_made_with(made[method], config, plan, FINISHED)
    for _ in range(1000):
        method = rng.choice(sorted(METHODS))
        changes = draw(rng, MUST_STAY, CHANGES_NOTHING, CHANGES_LEARNING)
        config = configured(method, changes)
        if not is_refused(changes):
            taken += 1
            check_made_with(made[method], config)
            continue
        refused += 1
        with pytest.raises(UserError) as caught:
            check_made_with(made[method], config)
        line = str(caught.value)
        assert "\n" not in line
        # A curriculum may be wrong in itself, with more lengths than tasks.
        by_itself = "must be one integer, or one for each" in line
        assert by_itself or (str(made[method]) in line and "must stay" in line)
        named = [key for key in changes if key in line or key.split(".")[0] in line]
        assert named, (changes, line)
    assert refused > 300 and taken > 300


@pytest.fixture(scope="module")
def saved(tmp_path_factory, ray_two_cpus) -> tuple[Path, str, str]:
    """A checkpoint after three epochs, and what the uninterrupted run came to."""
    algorithm = tiny_config().build_algo()
    train(algorithm, FINISHED)
    path = algorithm.save_to_path(tmp_path_factory.mktemp("restore") / "checkpoint")
    train(algorithm, 1)
    end = Path(path), digest(algorithm), scores(algorithm)
    algorithm.stop()
    return end


def goes_on(saved: tuple[Path, str, str], changes: dict[str, Any]) -> None:
    path, weights, table = saved
    config = configured("ARROW", changes)
    config.env_runners(num_cpus_per_env_runner=0)
    algorithm = config.build_algo()
    try:
        if is_refused(changes):
            before = digest(algorithm)
            with pytest.raises(UserError, match="must stay"):
                algorithm.restore_from_path(path)
            assert digest(algorithm) == before
        else:
            algorithm.restore_from_path(path)
            train(algorithm, 1)
            assert digest(algorithm) == weights, changes
            # All rows carry the name of the curriculum as it is now.
            setting = config.curriculum_object().setting
            named = table.replace(",default,", f",{setting},")
            assert scores(algorithm) == named, changes
    finally:
        algorithm.stop()


def test_what_changes_nothing_goes_on_to_the_byte(saved):
    goes_on(saved, {"replay_prefetch": 1, "curriculum.cycles": 2})


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_random_configurations_go_on_to_the_byte_or_leave_all_as_it_was(saved):
    rng = random.Random(9)
    stay = {k: v for k, v in MUST_STAY.items() if k not in ("env_options",)}
    for _ in range(12):
        changes = draw(rng, CHANGES_NOTHING, CHANGES_NOTHING, stay)
        goes_on(saved, changes)
