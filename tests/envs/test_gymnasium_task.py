"""A user's own Gymnasium environments as tasks."""

import gymnasium as gym
import numpy as np
import pytest
from ray import tune

from rllib_arrow.envs.suites import make_task, task_name

ID = "OwnTaskForTests-v0"


class Counter(gym.Env):
    """Shows how many episodes and steps it has seen; breaks where it is told to."""

    def __init__(
        self, shape=(16, 16, 3), dtype="uint8", actions=6, length=3, start=0, fault=None
    ):
        self.observation_space = gym.spaces.Box(0, 255, tuple(shape), np.dtype(dtype))
        self.action_space = gym.spaces.Discrete(actions, start=start)
        self.length, self.fault, self.episodes = length, fault, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.episodes += 1
        self.steps = 0
        return self.frame(), {}

    def frame(self):
        frame = np.zeros(self.observation_space.shape, self.observation_space.dtype)
        frame[0, 0, 0], frame[0, 1, 0] = self.episodes, self.steps
        frame[1, 0, 0] = self.np_random.integers(256)
        return frame

    def step(self, action):
        self.steps += 1
        frame, reward = self.frame(), float(action)
        if self.fault == "shape":
            frame = frame[:-1]
        if self.fault == "dtype":
            frame = frame.astype(np.float32)
        if self.fault == "list":
            frame = frame.tolist()
        if self.fault in ("nan", "inf", "1e39", "1e38"):
            reward = float(self.fault)
        if self.fault == "text":
            reward = "much"
        if self.fault == "array":
            reward = np.ones(2)
        ended = self.steps == self.length
        stopped = ended and self.fault == "both"
        if self.fault in ("terminated", "truncated"):
            ended, stopped = (None, False) if self.fault == "terminated" else (False, 0)
        return frame, reward, ended, stopped, {}


@pytest.fixture(autouse=True)
def registered():
    gym.register(ID, entry_point=Counter)
    yield
    del gym.registry[ID]


def make(num_envs=2, suite="custom", **kwargs):
    return make_task(suite, {"id": ID, "name": "mine", "kwargs": kwargs}, num_envs)


def test_an_episode_has_a_last_row_and_the_next_step_is_a_first_row():
    task = make(1)
    rows = [task.reset(0)] + [task.step(np.array([k])) for k in range(1, 6)]
    seen = [row.obs[0, 0, :2, 0].tolist() for row in rows]
    assert seen == [[1, 0], [1, 1], [1, 2], [1, 3], [2, 0], [2, 1]]
    assert [row.rewards[0] for row in rows] == [0, 1, 2, 3, 0, 5]
    assert [row.is_first[0] for row in rows] == [1, 0, 0, 0, 1, 0]
    assert [row.is_terminated[0] for row in rows] == [0, 0, 0, 1, 0, 0]


def test_reset_makes_environments_that_remember_nothing():
    task = make()
    first = task.reset(5)
    for _ in range(9):
        task.step(np.zeros(2, np.int64))
    again = task.reset(5)
    np.testing.assert_array_equal(first.obs, again.obs)
    assert (task.reset(6).obs != first.obs).any()


def test_copies_are_seeded_apart():
    frames = make(8).reset(0).obs
    assert len(set(frames[:, 1, 0, 0].tolist())) > 1


def test_an_end_that_is_both_counts_as_terminated():
    task = make(1, fault="both", length=1)
    task.reset(0)
    rows = task.step(np.array([0]))
    assert rows.is_terminated[0] and not rows.is_truncated[0]


def test_own_tasks_join_a_suite_whose_spaces_they_share():
    entry = {"id": ID, "reward_scale": 0.5}
    task = make_task("minatar", entry, 3, sticky=0.0)
    assert task.reset(0).obs.shape == (3, 16, 16, 3)
    assert task.reward_scale == 0.5


class Configured(Counter):
    """Takes one mapping, as RLlib's environments do."""

    def __init__(self, config):
        super().__init__(**config)


def test_a_class_is_a_task_and_gets_its_kwargs_as_rllib_gives_them():
    assert task_name("custom", Configured) == "Configured"
    assert make_task("custom", Configured, 2).reset(0).obs.shape == (2, 16, 16, 3)
    entry = {"id": Configured, "kwargs": {"shape": (32, 32, 1)}, "name": "grey"}
    assert task_name("minatar", entry) == "grey"
    assert make_task("custom", entry, 1).observation_space.shape == (32, 32, 1)


def test_a_name_that_tune_knows_is_a_task():
    tune.register_env("own_maze", lambda config: Counter(length=config.get("n", 3)))
    assert task_name("custom", "own_maze") == task_name("minatar", "own_maze")
    for entry, length in (("own_maze", 3), ({"id": "own_maze", "kwargs": {"n": 5}}, 5)):
        task = make_task("custom", entry, 1)
        task.reset(0)
        ends = [task.step(np.array([0])).is_last[0] for _ in range(length)]
        assert ends == [False] * (length - 1) + [True]


def test_vector_observations_are_refused_in_one_line():
    with pytest.raises(ValueError, match="'CartPole-v1' must have uint8 images") as e:
        make_task("custom", "CartPole-v1", 1)
    assert "the agents learn from pictures" in str(e.value) and "\n" not in str(e.value)


@pytest.mark.parametrize("kwargs", [{"shape": (64, 64, 3)}, {"actions": 18}])
def test_spaces_that_disagree_are_both_shown(kwargs):
    with pytest.raises(ValueError) as error:
        make(suite="minatar", **kwargs)
    message = str(error.value)
    assert "'mine'" in message and "'minatar'" in message and "\n" not in message
    assert message.count("Box(") == 2 and message.count("Discrete(") == 2


@pytest.mark.parametrize(
    "kwargs",
    [
        {"shape": (16, 16)},
        {"shape": (3, 16, 16)},
        {"dtype": "float32"},
        {"start": 1},
    ],
)
def test_spaces_that_are_not_images_and_actions_are_refused(kwargs):
    with pytest.raises(ValueError, match="'mine' must have uint8 images") as error:
        make(**kwargs)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("shape", "'mine' returned an observation of type uint8 and shape"),
        ("dtype", "'mine' returned an observation of type float32"),
        ("list", "'mine' returned an observation of type list"),
        ("nan", "'mine' returned the reward nan"),
        ("inf", "'mine' returned the reward inf"),
        ("1e39", r"'mine' returned the reward 1e\+39; .* in float32"),
        ("text", "'mine' returned the reward 'much'"),
        ("array", "'mine' returned the reward array"),
        ("terminated", "'mine' returned terminated=None; it must be true or false"),
        ("truncated", "'mine' returned truncated=0; it must be true or false"),
    ],
)
def test_what_a_broken_environment_returns_is_reported_with_the_task(fault, message):
    task = make(fault=fault)
    task.reset(0)
    with pytest.raises(ValueError, match=message):
        task.step(np.zeros(2, np.int64))


def test_a_reward_that_only_its_scale_makes_infinite_is_refused():
    entry = {"id": ID, "name": "mine", "kwargs": {"fault": "1e38"}}
    task = make_task("custom", entry, 1)
    task.reset(0)
    assert task.step(np.array([0])).rewards[0] == np.float32(1e38)
    task = make_task("custom", entry | {"reward_scale": 10}, 1)
    task.reset(0)
    with pytest.raises(ValueError, match=r"times the reward_scale \(10\)"):
        task.step(np.array([0]))


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ({}, r"task id \(None\)"),
        ({"id": 3}, r"task id \(3\)"),
        ({"id": ""}, r"task id \(''\)"),
        ({"id": ID, "name": None}, r"task name \(None\)"),
        ({"id": ID, "kwarg": {}}, "did you mean 'kwargs'?"),
        ({"id": ID, "kwargs": [1]}, r"task kwargs \(\[1\]\)"),
        ({"id": ID, "reward_scale": 0}, r"task reward_scale \(0\)"),
        ({"id": ID, "reward_scale": "1e-3"}, r"task reward_scale \('1e-3'\)"),
        ({"id": ID, "reward_scale": float("nan")}, r"task reward_scale \(nan\)"),
        ({"id": "Nowhere-v0"}, "'Nowhere-v0'.*failed with NameNotFound"),
        ({"id": ID, "kwargs": {"size": 2}}, "failed with TypeError"),
        ({"id": ID, "low": 1}, r"task low \(1\) needs low and high"),
        ({"id": ID, "low": 2, "high": 2.0}, r"low \(2\) must be below task high \(2\)"),
        ({"id": ID, "low": "0", "high": 2}, r"task low \('0'\) must be a finite"),
    ],
)
def test_a_malformed_entry_is_one_line(entry, message):
    with pytest.raises(ValueError, match=message) as error:
        make_task("custom", entry, 1)
    assert "\n" not in str(error.value)
