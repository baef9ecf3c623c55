"""A run from the outside: progress within an epoch, callbacks and films."""

from __future__ import annotations

import json

import pytest
from PIL import Image
from ray.tune import Callback

from rllib_arrow.errors import UserError
from rllib_arrow.experiments import progress
from rllib_arrow.experiments.callbacks import check_blame, load_callback
from rllib_arrow.experiments.cli import main

HERE = "tests.experiments.test_seeing"
TINY = {
    "curriculum.tasks": "[breakout, asterix]",
    "curriculum.epochs_per_task": 1,
    "num_envs_per_env_runner": 2,
    "rollout_fragment_length": 2000,  # long enough to be seen collecting
    "replay_chunk_length": 32,
    "replay_capacity_chunks": 8,
    "evaluation_duration": 1,
    "evaluation_interval": 1,
    "model_size": "nano",
    "world_model_updates": 120,  # long enough to be seen learning
    "actor_critic_updates": 2,
    "batch_size_B": 2,
    "batch_length_T": 8,
    "dream_starts": 4,
    "horizon_H": 3,
}


class Recorder(Callback):
    """Writes down the epochs that Tune tells it of."""

    def __init__(self, file: str):
        self.file = file

    def on_trial_result(self, iteration, trials, trial, result, **info):
        with open(self.file, "a") as file:
            line = {"epoch": result["training_iteration"], "trial": trial.trial_id}
            file.write(json.dumps(line) + "\n")


def test_a_callback_is_made_with_the_settings_beside_its_name():
    assert load_callback(f"{HERE}:Recorder {{file: a.txt}}").file == "a.txt"
    assert load_callback(f"{HERE}:Recorder{{file: 'a: b'}}").file == "a: b"
    assert isinstance(load_callback("ray.tune:Callback"), Callback)


def test_a_callback_in_the_current_directory_is_found(tmp_path, monkeypatch):
    text = "from ray.tune import Callback\n\nclass Mine(Callback):\n    pass\n"
    (tmp_path / "my_own_callbacks.py").write_text(text)
    monkeypatch.chdir(tmp_path)
    assert type(load_callback("my_own_callbacks:Mine")).__name__ == "Mine"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("ray.tune", "must be module:Class"),
        (":Callback", "must be module:Class"),
        ("ray.tuna:Callback", "cannot be imported: No module named 'ray.tuna'"),
        ("ray.tune:Calback", "cannot be imported: .*'Calback'"),
        ("ray.tune:Tuner", "Tuner is no ray.tune.Callback"),
        ("ray.tune:run", "run is no ray.tune.Callback"),
        (f"{HERE}:Recorder", "TypeError: .*'file'"),
        (f"{HERE}:Recorder {{fil: a}}", "TypeError: .*'fil'"),
        (f"{HERE}:Recorder {{file: [}}", "not YAML"),
        (f"{HERE}:Recorder {{1: 2}}", "{1: 2} must be {key: value"),
    ],
)
def test_a_callback_that_cannot_be_is_refused_in_one_line(text, problem):
    with pytest.raises(UserError, match=problem) as error:
        load_callback(text)
    assert "\n" not in str(error.value) and f"--callback {text}" in str(error.value)


def test_what_a_callback_of_the_users_raises_is_the_users():
    failing = load_callback(f"{HERE}:Recorder {{file: /no/where}}")
    result = {"training_iteration": 1}
    with pytest.raises(OSError) as error:
        failing.on_trial_result(1, [], None, result)
    check_blame(error.value, {"ray.tune:Callback": Callback()})
    with pytest.raises(UserError, match=r"mine: FileNotFoundError: .*/no/w"):
        check_blame(error.value, {"mine": failing})


def test_a_run_shows_its_updates_calls_back_and_can_be_filmed(
    tmp_path, capsys, monkeypatch, ray_two_cpus
):
    # Lines on the epoch under way come as soon as there is something to tell.
    monkeypatch.setattr(progress, "LINE_S", 0.0)
    monkeypatch.setattr(progress, "REDRAW_S", 0.0)
    recorder = f"{HERE}:Recorder {{file: {tmp_path / 'epochs'}}}"
    argv = ["train", "file", "arrow_smoke", "--storage", str(tmp_path)]
    argv += ["--callback", recorder]
    for key, value in TINY.items():
        argv += ["--set", f"{key}={value}"]
    assert main(argv) == 0, capsys.readouterr()
    out = capsys.readouterr().out
    assert " epoch 1/2 breakout: collecting\n" in out
    assert " epoch 1/2 breakout: update " in out
    epochs = (tmp_path / "epochs").read_text().splitlines()
    assert [json.loads(line)["epoch"] for line in epochs] == [1, 2]

    (checkpoint,) = (tmp_path / "arrow_smoke").glob("*/checkpoint_*1")
    # The class by its name: with its code, no later version could read it.
    stored = (checkpoint / "class_and_ctor_args.pkl").read_bytes()
    assert b"ARROW" in stored and b"_compile_iteration_results" not in stored
    films = tmp_path / "films"
    argv = ["evaluate", str(checkpoint), "--tasks", "asterix", "--episodes", "1"]
    assert main([*argv, "--video", str(films)]) == 0, capsys.readouterr()
    assert f"Film: {films / 'asterix.gif'}\n" in capsys.readouterr().out
    assert [path.name for path in films.iterdir()] == ["asterix.gif"]
    with Image.open(films / "asterix.gif") as gif:
        assert gif.size == (260, 128) and gif.n_frames > 1

    argv = ["train", "file", "arrow_smoke", "--storage", str(tmp_path), "--resume"]
    for key, value in TINY.items():
        argv += ["--set", f"{key}={value}"]
    assert main(argv) == 2
    assert "callbacks is None, but the run" in capsys.readouterr().err
