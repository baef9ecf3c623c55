"""Same seed and actions, same rows: for every task, and however it was used before."""

import hashlib

import numpy as np
import pytest

from rllib_arrow.envs.base import Rows, VectorTask
from rllib_arrow.envs.suites import SUITES, make_task

ALL_TASKS = [(s.name, task) for s in SUITES.values() for task in s.tasks]
# An emulated frame costs most by far; several games at once are tested separately.
ENVS = {"atari": 1, "coinrun": 2, "minatar": 2, "minatar_variants": 2, "minigrid": 2}


def digests(task: VectorTask, seed: int, steps: int) -> list[str]:
    """Plays random actions and returns a fingerprint of each call's rows."""
    rng = np.random.default_rng(99)
    rows = [fingerprint(task.reset(seed))]
    for _ in range(steps):
        actions = rng.integers(task.action_space.n, size=task.num_envs)
        rows.append(fingerprint(task.step(actions)))
    return rows


def fingerprint(rows: Rows) -> str:
    return hashlib.md5(b"".join(field.tobytes() for field in rows)).hexdigest()


@pytest.mark.parametrize(("suite", "name"), ALL_TASKS)
def test_a_used_task_that_is_reset_repeats_2000_steps_of_a_new_one(suite, name):
    new, used = (make_task(suite, name, ENVS[suite]) for _ in range(2))
    seed = 2**40 + 3  # beyond what any of the simulators takes
    expected = digests(new, seed, 2000)
    assert digests(used, 3, 200) != expected[:201], "another seed must differ"
    assert digests(used, seed, 2000) == expected
    new.close()
    used.close()


@pytest.mark.parametrize(
    ("suite", "name"),
    [("atari", "frostbite"), ("coinrun", "coinrun"), ("minatar", "breakout")],
)
def test_reset_right_after_an_end_forgets_that_an_episode_ended(suite, name):
    options = {"max_num_frames_per_episode": 40} if suite == "atari" else {}
    used = make_task(suite, name, 4, **options)
    rows = used.reset(1)
    while not rows.is_last.any():
        rows = used.step(np.arange(4) % used.action_space.n)
    expected = digests(make_task(suite, name, 4, **options), 8, 40)
    assert digests(used, 8, 40) == expected


@pytest.mark.parametrize(
    ("suite", "name"), [("atari", "boxing"), ("minatar", "freeway")]
)
def test_environments_side_by_side_have_streams_of_their_own(suite, name):
    task = make_task(suite, name, 4)
    task.reset(0)
    for _ in range(60):
        rows = task.step(np.full(4, 2))
    assert len({frame.tobytes() for frame in rows.obs}) > 1


@pytest.mark.parametrize("suite", list(SUITES))
def test_rows_kept_by_the_caller_do_not_change_with_later_steps(suite):
    task = make_task(suite, SUITES[suite].tasks[0], 2)
    kept = [task.reset(0)]
    kept += [task.step(np.array([2, 3])) for _ in range(5)]
    before = [fingerprint(rows) for rows in kept]
    for _ in range(30):
        task.step(np.array([1, 4]))
    assert [fingerprint(rows) for rows in kept] == before
