"""The registry: names, spaces, scales, reference scores and its error messages."""

import numpy as np
import pytest

from rllib_arrow.envs import coinrun, options
from rllib_arrow.envs.suites import (
    SUITES,
    make_task,
    reference_of,
    reference_scores,
    task_label,
    task_name,
)
from rllib_arrow.envs.titles import TITLES
from rllib_arrow.errors import UserError


def test_suites_have_the_tasks_of_the_contract_in_default_order():
    assert SUITES["atari"].tasks == (
        "ms_pacman",
        "boxing",
        "crazy_climber",
        "frostbite",
        "seaquest",
        "enduro",
    )
    assert SUITES["coinrun"].tasks == (
        "coinrun",
        "nb",
        "nb_rt",
        "nb_rt_ga",
        "nb_rt_ga_ma",
        "nb_rt_ga_ma_ca",
    )
    assert SUITES["minatar"].tasks == (
        "breakout",
        "asterix",
        "space_invaders",
        "freeway",
        "seaquest",
    )
    assert SUITES["minatar_variants"].tasks == (
        "base",
        "palette",
        "background",
        "mirrored",
        "monochrome",
        "bullets",
    )
    assert SUITES["minigrid"].tasks == (
        "door_key",
        "simple_crossing",
        "lava_gap",
        "multi_room",
    )
    shapes = {
        s.name: (s.observation_space.shape, s.num_actions) for s in SUITES.values()
    }
    assert shapes == {
        "atari": ((64, 64, 3), 18),
        "coinrun": ((64, 64, 3), 15),
        "minatar": ((16, 16, 3), 6),
        "minatar_variants": ((16, 16, 3), 6),
        "minigrid": ((16, 16, 3), 6),
    }
    assert SUITES["coinrun"].labels["nb_rt_ga"] == "+NB+RT+GA"


@pytest.mark.parametrize("suite", list(SUITES))
def test_all_tasks_of_a_suite_have_its_spaces_and_their_reward_scale(suite):
    for name in SUITES[suite].tasks:
        task = make_task(suite, name, 2)
        rows = task.reset(0)
        task.close()
        task.close()
        assert rows.obs.shape == (2, *SUITES[suite].observation_space.shape)
        assert rows.obs.dtype == np.uint8 and rows.rewards.dtype == np.float32
        assert all(flag.dtype == bool for flag in rows[2:])
        assert task.observation_space == SUITES[suite].observation_space
        assert task.action_space == SUITES[suite].action_space
        assert task.reward_scale == SUITES[suite].reward_scale(name)


def test_a_maze_counts_tenfold_in_training_beside_a_game():
    names = ["space_invaders", "minigrid/lava_gap"]
    tasks = [make_task("minatar", name, 1) for name in names]
    assert [task.reward_scale for task in tasks] == [1.0, 10.0]


def test_every_suite_has_a_title():
    assert list(TITLES) == list(SUITES)


def test_rewards_are_raw_whatever_the_reward_scale():
    task = make_task("atari", "crazy_climber", 1)
    assert task.reward_scale == 0.001
    task.reset(0)
    actions = np.random.default_rng(0).integers(18, size=(300, 1))
    assert max(task.step(a).rewards[0] for a in actions) >= 100


def test_options_reach_the_task():
    task = make_task("minatar", "breakout", 1, max_episode_steps=3)
    task.reset(0)
    ends = [bool(task.step(np.zeros(1, np.int64)).is_truncated[0]) for _ in range(8)]
    # Three steps and a reset, again and again.
    assert ends == [False, False, True, False, False, False, True, False]


@pytest.mark.parametrize(
    ("arguments", "kwargs", "message"),
    [
        (("ataro", "boxing", 1), {}, "unknown suite 'ataro': did you mean 'atari'?"),
        ((None, "boxing", 1), {}, "unknown suite None"),
        ((["atari"], "boxing", 1), {}, r"unknown suite \['atari'\]"),
        (("atari", "pacman", 1), {}, "did you mean 'ms_pacman'?"),
        (("minatar", 7, 1), {}, "unknown task of suite 'minatar' 7"),
        (("custom", "boxing", 1), {}, "unknown environment 'boxing': a task of"),
        (("custom", 7, 1), {}, "unknown environment 7: a task of"),
        (("minatar", {"id": "brekout"}, 1), {}, "did you mean 'breakout'?"),
        (("custom", int, 1), {}, "task id .*int.* must be the name of an env"),
        (("custom", "minigrid/lava", 1), {}, "did you mean 'lava_gap'?"),
        (("custom", "ALE/Pang-v5", 1), {}, "ALE game 'pang': did you mean 'pong'?"),
        (("atari", "boxing", 1), {"frameskip": 2}, "did you mean 'frame_skip'?"),
        (("minatar", "freeway", 1), {"sticki": 2}, "did you mean 'sticky'?"),
        (("minatar", "freeway", 1), {"sticky": 2}, r"sticky \(2\) must be"),
        (("coinrun", "nb", 1), {"num_levels": -1}, r"num_levels \(-1\) must be"),
        (("atari", "boxing", 0), {}, r"num_envs \(0\) must be an integer >= 1"),
        (("atari", "boxing", 2.0), {}, r"num_envs \(2.0\) must be"),
    ],
)
def test_a_mistake_is_answered_in_one_line_with_the_remedy(arguments, kwargs, message):
    with pytest.raises(ValueError, match=message) as error:
        make_task(*arguments, **kwargs)
    assert "\n" not in str(error.value)


def test_a_missing_simulator_is_one_line_that_names_the_package(monkeypatch):
    def refuse(module):
        raise ModuleNotFoundError(f"No module named {module!r}")

    monkeypatch.setattr(options.importlib, "import_module", refuse)
    for suite, package in [("atari", "ale-py"), ("minatar", "MinAtar")]:
        with pytest.raises(UserError, match=f"pip install {package}") as error:
            make_task(suite, SUITES[suite].tasks[0], 1)
        assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("system", "machine", "python", "message"),
    [
        ("linux", "x86_64", (3, 12), "run: pip install procgen-mirror"),
        ("linux", "x86_64", (3, 10), "run: pip install procgen$"),
        ("linux", "x86_64", (3, 13), "not for linux on x86_64 with Python 3.13; use"),
        ("linux", "aarch64", (3, 11), "not for linux on aarch64 with Python 3.11; use"),
        ("darwin", "arm64", (3, 12), "not for darwin on arm64 with Python 3.12; use"),
    ],
)
def test_coinrun_without_procgen_says_whether_it_can_be_installed(
    monkeypatch, system, machine, python, message
):
    def refuse(module):
        raise ModuleNotFoundError(f"No module named {module!r}")

    monkeypatch.setattr(options.importlib, "import_module", refuse)
    monkeypatch.setattr(coinrun.sys, "platform", system)
    monkeypatch.setattr(coinrun.sys, "version_info", (*python, 1))
    monkeypatch.setattr(coinrun.platform, "machine", lambda: machine)
    with pytest.raises(UserError, match=message) as error:
        make_task("coinrun", "nb", 1)
    assert "\n" not in str(error.value)


def test_paper_scores_are_converted_to_raw_points():
    atari = reference_scores("atari")
    # 12.40 at scale 0.05; 7.49 at 0.001; 14.48 at 0.2: worked by hand.
    assert atari["ms_pacman"].paper_random == pytest.approx(248.0)
    assert atari["crazy_climber"].paper_random == pytest.approx(7490.0)
    assert atari["frostbite"].paper_random == pytest.approx(72.4)
    assert atari["ms_pacman"].arrow == 1540.30
    assert reference_scores("coinrun")["nb"].paper_random == pytest.approx(2.45)


@pytest.mark.parametrize("suite", list(SUITES))
def test_every_task_ships_a_measured_random_score_with_its_source(suite):
    needed = 30 if suite == "atari" else 200
    references = reference_scores(suite)
    assert tuple(references) == SUITES[suite].tasks
    for reference in references.values():
        assert reference.random_episodes >= needed
        assert "random_scores" in reference.source
        assert reference.arrow is not None or suite.startswith("min")
        assert reference.arrow is None or reference.arrow > reference.random


def test_task_names_of_own_tasks_are_their_name_or_their_id():
    assert task_name("custom", {"id": "A-v0"}) == "A-v0"
    assert task_name("atari", {"id": "A-v0", "name": "mine"}) == "mine"
    with pytest.raises(ValueError, match="unknown suite"):
        task_name("nowhere", {"id": "A-v0"})


def test_any_ale_game_is_played_as_the_suites_are():
    rows = []
    for suite, task in (("atari", "boxing"), ("custom", "ALE/Boxing-v5")):
        made = make_task(suite, task, 1)
        made.reset(3)
        rows.append([made.step(np.array([k % 18])) for k in range(20)])
    for ours, theirs in zip(*rows, strict=True):
        np.testing.assert_array_equal(ours.obs, theirs.obs)
    assert task_name("atari", "ALE/Pong-v5") == "ALE/Pong-v5"
    limited = make_task("atari", "ALE/MsPacman-v5", 1, max_num_frames_per_episode=8)
    limited.reset(0)
    assert [limited.step(np.array([0])).is_last[0] for _ in range(2)][1]


def test_a_task_of_another_suite_joins_where_the_spaces_agree():
    task = make_task("minatar", "minigrid/lava_gap", 2, sticky=0.0)
    assert task.reset(0).obs.shape == (2, 16, 16, 3)
    entry = {"id": "minatar/freeway", "kwargs": {"hold": 5}, "reward_scale": 2}
    task = make_task("custom", entry, 1)
    task.reset(0)
    steps = 1
    while not task.step(np.array([0])).is_last[0]:
        steps += 1
    assert steps == 500 and task.reward_scale == 2
    with pytest.raises(ValueError, match="they must agree"):
        make_task("minatar", "atari/boxing", 1)
    entry = {"id": "minigrid/lava_gap", "kwargs": {"sticky": 0.0}}
    with pytest.raises(ValueError, match="option of suite 'minigrid' 'sticky'"):
        make_task("minatar", entry, 1)


def test_a_users_low_and_high_come_before_the_shipped_scores():
    assert (
        reference_of("minatar", "breakout") == reference_scores("minatar")["breakout"]
    )
    of_suite = reference_of("custom", "minatar/breakout")
    assert of_suite == reference_scores("minatar")["breakout"]
    own = reference_of("custom", {"id": "minatar/breakout", "low": 1, "high": 9})
    assert (own.random, own.arrow) == (1, 9) and "given" in own.source
    entry = {"id": "breakout", "low": 1, "high": 9}
    assert task_name("minatar", entry) == "breakout"
    assert reference_of("minatar", entry) == own
    assert make_task("minatar", entry, 1, sticky=0.0).reset(0).obs.shape[1] == 16
    assert reference_of("custom", "Maze-v0") is None


def test_a_task_has_a_label_wherever_it_stands():
    assert task_label("minatar", "breakout") == "Breakout"
    assert task_label("minatar", "minigrid/lava_gap") == "LavaGap"
    assert task_label("custom", "coinrun/nb") == "+NB"
    for name in ("ALE/Pong-v5", "mine", "a/b/c"):
        assert task_label("custom", name) == task_label("nowhere", name) == name
