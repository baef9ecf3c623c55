"""The epoch loop that all algorithms share, run for real at a tiny scale."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import ray
from ray.rllib.algorithms.algorithm import Algorithm

from rllib_arrow import ARROW
from rllib_arrow.checkpoints.seal import CheckpointError
from rllib_arrow.experiments import tuned_examples
from rllib_arrow.experiments.experiment import read_experiment
from rllib_arrow.runs.read import read_runs
from tests.algorithms.tiny import (
    METHODS,
    digest,
    save_three,
    scores,
    tiny_config,
    train,
)

pytestmark = pytest.mark.usefixtures("ray_two_cpus")

RESUME = """
import json, sys, torch
torch.set_num_threads(1)
from ray.rllib.algorithms.algorithm import Algorithm
from rllib_arrow.checkpoints.restore_to_act import evaluate_checkpoint
from tests.algorithms.tiny import digest, scores, train

for method, path in json.loads(sys.argv[1]).items():
    rows = evaluate_checkpoint(path)
    [one] = evaluate_checkpoint(path, 2, ["space_invaders"])
    algorithm = Algorithm.from_checkpoint(path)
    train(algorithm, 2)
    found = {
        "evaluated": [",".join(map(str, row.values())) for row in rows],
        "one_task": [one["eval_task"], one["episodes"]],
        "scores": scores(algorithm),
        "digest": digest(algorithm),
    }
    algorithm.stop()
    print("FOUND", json.dumps([method, found]))
"""


def test_checkpoints_go_on_and_evaluate_in_a_new_process_as_in_the_old(tmp_path):
    expected, paths = {}, {}
    for method in METHODS:
        algorithm = tiny_config(method).build_algo()
        train(algorithm, 2)
        paths[method] = algorithm.save_to_path(tmp_path / method)
        logged = scores(algorithm).splitlines()[-2:]
        train(algorithm, 2)
        expected[method] = {
            "evaluated": logged,
            "one_task": ["space_invaders", 2],
            "scores": scores(algorithm),
            "digest": digest(algorithm),
        }
        algorithm.stop()
    resumed = subprocess.run(
        [sys.executable, "-c", RESUME, json.dumps(paths)],
        cwd=Path(__file__).parents[2],
        capture_output=True,
        text=True,
        timeout=250,
    )
    lines = [line.split(" ", 1) for line in resumed.stdout.splitlines()]
    found = dict(json.loads(line[1]) for line in lines if line[0] == "FOUND")
    assert found == expected, resumed.stderr[-2000:]


def test_a_damaged_checkpoint_makes_way_for_the_one_before_it(tmp_path):
    algorithm = tiny_config().build_algo()
    paths, truth = save_three(algorithm, tmp_path)
    # The newest has lost a part of its replay, the next one its weights.
    [segment, *_] = sorted((paths[2] / "replay").glob("segment-*"))
    segment.write_bytes(segment.read_bytes()[:-1])
    (paths[1] / "learner_group/learner/rl_module/module_state.pkl").unlink()

    algorithm.load_checkpoint(str(paths[2]))
    assert algorithm.iteration == 1
    first, second = train(algorithm, 2)
    told = first["recovered"]
    assert told.startswith(str(segment)) and f"Went on from {paths[0]}" in told
    assert "\n" not in told and second["recovered"] == ""
    assert (digest(algorithm), scores(algorithm)) == truth
    # What differs breaks a seal; a file that is not there may be back.
    assert [(path / "seal").exists() for path in paths] == [True, True, False]
    assert (paths[2] / "seal.broken").exists()

    shutil.copytree(paths[0], tmp_path / "checkpoint_tmp_of_another_run")
    (paths[0] / "seal").unlink()
    with pytest.raises(CheckpointError, match=r"checkpoint_000002.*not a whole"):
        algorithm.load_checkpoint(str(paths[2]))
    algorithm.stop()


def test_a_checkpoint_is_saved_to_a_local_directory_and_read_from_anywhere(tmp_path):
    algorithm = tiny_config().build_algo()
    train(algorithm, 1)
    with pytest.raises(ValueError, match=r"s3://bucket/x.*local directory"):
        algorithm.save_to_path("s3://bucket/x")
    algorithm.save_to_path(tmp_path / "checkpoint")
    saved = digest(algorithm)
    train(algorithm, 1)
    algorithm.restore_from_path(f"file://{tmp_path}/checkpoint")
    assert (digest(algorithm), algorithm.iteration) == (saved, 1)
    algorithm.stop()

    (tmp_path / "checkpoint" / "class_and_ctor_args.pkl").write_bytes(b"damaged")
    with pytest.raises(CheckpointError, match="class_and_ctor_args"):
        ARROW.from_checkpoint(tmp_path / "checkpoint")


def test_a_learner_that_died_leaves_no_checkpoint_that_looks_whole(
    tmp_path, monkeypatch
):
    config = tiny_config().learners(num_learners=1, num_cpus_per_learner=0)
    algorithm = config.build_algo()
    train(algorithm, 1)
    algorithm.save_to_path(tmp_path / "good")
    [learner] = algorithm.learner_group._worker_manager.actors().values()
    ray.kill(learner)
    with pytest.raises(ray.exceptions.RayActorError):
        algorithm.save_to_path(tmp_path / "bad")
    assert not (tmp_path / "bad" / "seal").exists()
    # One that dies a little later, RLlib does not notice.
    monkeypatch.setattr(Algorithm, "save_to_path", lambda self, path: path)
    with pytest.raises(RuntimeError, match="learner died while saving"):
        algorithm.save_to_path(tmp_path / "bad")
    assert not (tmp_path / "bad" / "seal").exists()
    algorithm.stop()


def test_arrow_is_dv3_but_for_the_long_term_memory():
    def run(config):
        algorithm = config.build_algo()
        train(algorithm, 2)
        result = digest(algorithm), scores(algorithm).replace("AR0,", "DV3,")
        algorithm.stop()
        return result

    dv3 = run(tiny_config("DV3"))
    assert run(tiny_config("ARROW").training(ltdm_fraction=0.0)) == dv3
    assert run(tiny_config("ARROW"))[0] != dv3[0]


def test_the_papers_placement_changes_nothing_but_the_place_of_work():
    def run(config):
        algorithm = config.continual(diagnostics=True).build_algo()
        results = train(algorithm, 4)
        seen = (algorithm.run_directory.local / "inside.csv").read_text()
        table = scores(algorithm)
        algorithm.stop()
        return (table, seen), results

    local, _ = run(tiny_config())
    paper = read_experiment(tuned_examples.find("arrow_atari")).config
    keys = ("num_learners", "num_env_runners", "evaluation_num_env_runners")
    placement = {key: paper[key] for key in (*keys, "evaluation_parallel_to_training")}
    assert list(placement.values()) == [1, 1, 1, True]
    remote = tiny_config().update_from_dict(placement)
    remote.env_runners(num_cpus_per_env_runner=0).learners(num_cpus_per_learner=0)
    spread, results = run(remote)
    assert spread == local
    # Evaluated beside the next epoch, so reported with it; the last two come together.
    assert [result["evaluation"]["epoch"] for result in results] == [0, 1, 2, 4]


def test_several_runners_share_an_epoch():
    config = tiny_config().env_runners(num_env_runners=2, num_cpus_per_env_runner=0)
    algorithm = config.build_algo()
    [result] = train(algorithm, 1)
    assert result["frames"] == 2 * 4 * 40
    algorithm.stop()


def test_results_and_files_tell_the_task_the_frames_and_the_scores():
    algorithm = tiny_config().continual(pictures_interval=4).build_algo()
    results = train(algorithm, 4)
    progress = [(r["curriculum"]["task"], r["curriculum"]["switch"]) for r in results]
    assert progress == [
        ("breakout", False),
        ("breakout", True),
        ("space_invaders", False),
        ("space_invaders", False),
    ]
    assert [r["frames"] for r in results] == [160, 320, 480, 640]
    assert [r["done"] for r in results] == [False, False, False, True]
    assert set(results[-1]["evaluation"]) >= {"breakout", "ACC", "F", "WC_ACC", "epoch"}
    # 640 rows in all; what does not fill a chunk of 24 waits for the rows that follow.
    assert results[-1]["replay"]["chunks_added"] == 4 * (160 // 24)
    assert algorithm.env_runner.task == "space_invaders"
    with pytest.raises(ValueError, match="curriculum ends after 4 epochs"):
        algorithm.train()
    algorithm.stop()

    directory = algorithm.run_directory.local
    curriculum = json.loads((directory / "curriculum.json").read_text())
    assert curriculum["tasks"] == ["breakout", "space_invaders"]
    [run] = read_runs([directory])
    assert (run.curve.method, run.curve.setting) == ("ARROW", "default")
    assert list(run.curve.epochs) == [0, 1, 2, 3, 4] and run.finished
    pictures = sorted(p.name for p in (directory / "pictures/epoch_000004").iterdir())
    assert pictures == ["dream.png", "reconstruction.png"]
