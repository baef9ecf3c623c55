"""The CoinRun suite against Procgen's own environment."""

import numpy as np
import pytest

from rllib_arrow.envs.base import native_seeds
from rllib_arrow.envs.coinrun import VARIANTS, CoinRunTask, import_procgen

LEFT, NOTHING, RIGHT, JUMP_RIGHT = 1, 4, 7, 8


def test_rows_equal_a_raw_gym3_environment_across_deaths_coins_and_time_outs():
    envs, steps, seed = 8, 1010, 2**33 + 5
    task = CoinRunTask("nb_rt", envs)
    raw = import_procgen().ProcgenGym3Env(
        num=envs,
        env_name="coinrun",
        rand_seed=native_seeds(seed, 1)[0],
        distribution_mode="hard",
        use_backgrounds=False,
        restrict_themes=True,
    )
    rows = task.reset(seed)
    np.testing.assert_array_equal(rows.obs, raw.observe()[1]["rgb"])
    assert rows.is_first.all() and not rows.is_last.any() and not rows.rewards.any()

    rng = np.random.default_rng(0)
    shown = rows.obs.copy()
    ended, age = [False] * envs, [0] * envs
    kinds = {"death": 0, "coin": 0, "time": 0}
    for _ in range(steps):
        actions = rng.choice([NOTHING, RIGHT, JUMP_RIGHT, JUMP_RIGHT], size=envs)
        actions[0] = LEFT  # runs against the wall until the time is up
        played = [NOTHING if e else a for e, a in zip(ended, actions, strict=True)]
        raw.act(np.array(played))
        reward, obs, first = raw.observe()
        rows = task.step(actions)
        for i in range(envs):
            age[i] += 1
            assert rows.is_first[i] == ended[i]
            if ended[i]:
                expected = (obs["rgb"][i], 0.0, False, False)
                assert not first[i], "the no-op ended an episode: choose another seed"
            elif first[i]:
                out_of_time = age[i] == 1000 and reward[i] == 0
                kinds["time" if out_of_time else "coin" if reward[i] else "death"] += 1
                expected = (shown[i], reward[i], not out_of_time, out_of_time)
                age[i] = 0
            else:
                expected = (obs["rgb"][i], reward[i], False, False)
            np.testing.assert_array_equal(rows.obs[i], expected[0])
            assert rows.rewards[i] == expected[1]
            assert (rows.is_terminated[i], rows.is_truncated[i]) == expected[2:]
            ended[i] = bool(first[i]) and not ended[i]
        shown = rows.obs.copy()
    assert min(kinds.values()) > 0, kinds


def test_a_level_that_ends_with_the_no_op_gives_one_first_row_and_no_reward():
    class Scripted:
        """Every action ends a level and pays 10."""

        def act(self, actions):
            self.actions = actions

        def observe(self):
            frame = np.full((1, 64, 64, 3), 9, np.uint8)
            return np.array([10.0], np.float32), {"rgb": frame}, np.array([True])

        def close(self):
            pass

    task = CoinRunTask("coinrun", 1)
    task.reset(0)
    task.close()
    task._env = Scripted()
    last = task.step(np.array([RIGHT]))
    assert last.is_terminated[0] and last.rewards[0] == 10
    first = task.step(np.array([RIGHT]))
    assert task._env.actions.tolist() == [NOTHING]
    assert first.is_first[0] and not first.is_last[0] and first.rewards[0] == 0
    assert task.step(np.array([RIGHT])).is_terminated[0]
    task.close()


def test_variants_add_the_papers_flags_one_by_one():
    sizes = [len(flags) for flags in VARIANTS.values()]
    assert sizes == [0, 1, 2, 3, 4, 5]
    assert VARIANTS["nb_rt_ga_ma_ca"] == {
        "use_backgrounds": False,
        "restrict_themes": True,
        "use_generated_assets": True,
        "use_monochrome_assets": True,
        "center_agent": False,
    }


def test_every_variant_looks_different():
    frames = {CoinRunTask(v, 1).reset(4).obs.tobytes() for v in VARIANTS}
    assert len(frames) == len(VARIANTS)


def test_an_unknown_distribution_mode_is_answered_with_the_nearest():
    with pytest.raises(ValueError, match="did you mean 'easy'"):
        CoinRunTask("coinrun", 1, distribution_mode="eazy")
