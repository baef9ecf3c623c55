"""A user's mistake that shows late is told once, in one line, and not repeated."""

from __future__ import annotations

from types import SimpleNamespace

import gymnasium as gym
import pytest
from ray.exceptions import ActorDiedError
from ray.tune.experiment import Trial

from rllib_arrow.checkpoints.seal import CheckpointError
from rllib_arrow.errors import UserError
from rllib_arrow.experiments import cluster
from rllib_arrow.experiments.cli import main
from rllib_arrow.experiments.mistakes import is_users_mistake
from rllib_arrow.ray_private import never_retried
from rllib_arrow.settings import SettingError
from tests.algorithms.corridor import Corridor

HERE = "tests.experiments.test_mistakes"


class Generous(Corridor):
    """Gives a reward that is no number, from its hundredth step on."""

    steps = 0

    def step(self, action):
        self.steps += 1
        obs, reward, *ends = super().step(action)
        return obs, float("nan") if self.steps >= 100 else reward, *ends


class Shy(Corridor):
    """Cannot be made."""

    def __init__(self):
        raise OSError("no display\nfound")


gym.register("Generous-v0", Generous)
gym.register("Shy-v0", Shy)


def written(path, *tasks: str) -> str:
    curriculum = f"{{suite: custom, epochs_per_task: 1, tasks: [{', '.join(tasks)}]}}"
    settings = "rollout_fragment_length: 128, replay_chunk_length: 8"
    settings += ", train_batch_size_per_learner: 8, updates_per_epoch: 1"
    config = f"{{curriculum: {curriculum}, {settings}, evaluation_interval: 0}}"
    path.write_text(f"mine: {{run: TES-SAC, config: {config}}}")
    return str(path)


@pytest.mark.parametrize(
    ("tasks", "said"),
    [
        (['"no_such_module:Game-v0"'], "No module named 'no_such_module'"),
        ([f'"{HERE}:Shy-v0"'], "failed with OSError: no display found"),
        ([f'"{HERE}:Generous-v0"', "minatar/breakout"], "cannot share a curriculum"),
    ],
)
def test_an_environment_that_cannot_be_made_is_refused_before_ray_starts(
    tasks, said, tmp_path, capsys, monkeypatch
):
    monkeypatch.setattr(cluster, "connect", lambda *given: pytest.fail("Ray starts"))
    file = written(tmp_path / "mine.yaml", *tasks)
    assert main(["train", "file", file, "--storage", str(tmp_path / "runs")]) == 2
    out, err = capsys.readouterr()
    assert out == "" and err.count("\n") == 1
    assert err.startswith(f"rllib: {file}: ") and said in err
    assert not (tmp_path / "runs").exists()


def test_a_mistake_that_shows_in_a_trial_is_made_once(tmp_path, capsys, ray_two_cpus):
    file = written(tmp_path / "mine.yaml", f'"{HERE}:Generous-v0"')
    assert main(["train", "file", file, "--storage", str(tmp_path / "runs")]) == 2
    out, err = capsys.readouterr()
    assert "to be resumed" not in out and out.count("failed (UserError: ") == 1
    [line] = [line for line in err.splitlines() if line.startswith("rllib: ")]
    assert "epoch 0, task" in line and "returned the reward nan" in line


def test_only_mistakes_of_the_user_are_final():
    assert is_users_mistake(UserError("x"))
    assert is_users_mistake(SimpleNamespace(cause=SettingError("seed", -1, "is bad")))
    for passing in (None, OSError("x"), RuntimeError("x"), CheckpointError("x")):
        assert not is_users_mistake(passing)
    started = ActorDiedError()
    assert not is_users_mistake(started)
    started.error_msg = (
        "died in its creation task\n  a.b.SettingError: seed (-1) is bad"
    )
    assert is_users_mistake(started)


def test_tune_retries_what_may_pass_and_nothing_else():
    class Failed(SimpleNamespace):
        is_restoring, local_path, max_failures = False, None, 2

        def __init__(self):
            metadata = SimpleNamespace(num_failures=0, invalidate_cache=lambda: None)
            super().__init__(trial_id="a", run_metadata=metadata)

    before = Trial.should_recover
    with never_retried(is_users_mistake):
        trial = Failed()
        retried = []
        for error in (UserError("x"), OSError("x"), OSError("x")):
            Trial.handle_error(trial, error)
            retried.append(Trial.should_recover(trial))
        assert retried == [False, True, False]
    assert Trial.should_recover is before
