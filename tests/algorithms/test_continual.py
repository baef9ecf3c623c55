"""The epoch loop that all algorithms share, run for real at a tiny scale."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from rllib_arrow.evaluation.checkpoint import evaluate_checkpoint
from rllib_arrow.reports.load import load_runs
from tests.algorithms.tiny import METHODS, digest, scores, tiny_config, train

pytestmark = pytest.mark.usefixtures("ray_two_cpus")

RESUME = """
import sys, torch
torch.set_num_threads(1)
from rllib_arrow import ARROW
from ray.rllib.algorithms.algorithm import Algorithm
from tests.algorithms.tiny import digest, scores, train
algorithm = Algorithm.from_checkpoint(sys.argv[1])
train(algorithm, 2)
print("DIGEST", digest(algorithm))
print("SCORES", repr(scores(algorithm)))
algorithm.stop()
"""


@pytest.mark.parametrize("method", METHODS)
def test_a_run_resumed_in_a_new_process_equals_one_never_interrupted(method, tmp_path):
    algorithm = tiny_config(method).build_algo()
    train(algorithm, 2)
    algorithm.save_to_path(tmp_path / "half")
    train(algorithm, 2)
    root = Path(__file__).parents[2]
    resumed = subprocess.run(
        [sys.executable, "-c", RESUME, str(tmp_path / "half")],
        cwd=root,
        capture_output=True,
        text=True,
        timeout=200,
    )
    lines = dict(
        line.split(" ", 1)
        for line in resumed.stdout.splitlines()
        if line.startswith(("DIGEST", "SCORES"))
    )
    assert lines, resumed.stderr[-2000:]
    assert lines["SCORES"] == repr(scores(algorithm))
    assert lines["DIGEST"] == digest(algorithm)
    algorithm.stop()


def test_arrow_without_long_term_memory_is_dv3():
    runs = []
    without = tiny_config("ARROW").training(ltdm_fraction=0.0)
    for config in (without, tiny_config("DV3")):
        algorithm = config.build_algo()
        train(algorithm, 2)
        runs.append((digest(algorithm), scores(algorithm).replace("AR0,", "DV3,")))
        algorithm.stop()
    assert runs[0] == runs[1]


def test_the_long_term_memory_changes_what_is_learned():
    digests = set()
    for fraction in (0.0, 0.5):
        algorithm = tiny_config("ARROW").training(ltdm_fraction=fraction).build_algo()
        train(algorithm, 2)
        digests.add(digest(algorithm))
        algorithm.stop()
    assert len(digests) == 2


def test_workers_change_nothing_but_the_place_of_work():
    def run(config):
        algorithm = config.build_algo()
        results = train(algorithm, 4)
        table = scores(algorithm)
        algorithm.stop()
        return table, results

    local, _ = run(tiny_config())
    remote = tiny_config().env_runners(num_env_runners=1).learners(num_learners=1)
    remote.env_runners(num_cpus_per_env_runner=0).learners(num_cpus_per_learner=0)
    remote.evaluation(
        evaluation_num_env_runners=1, evaluation_parallel_to_training=True
    )
    spread, results = run(remote)
    assert spread == local
    # Evaluated beside the next epoch, so reported with it; the last two come together.
    assert [result["evaluation"]["epoch"] for result in results] == [0, 1, 2, 4]


def test_several_runners_share_an_epoch_and_two_learners_stay_equal():
    config = tiny_config().env_runners(num_env_runners=2, num_cpus_per_env_runner=0)
    config.learners(num_learners=2, num_cpus_per_learner=0)
    algorithm = config.build_algo()
    [result] = train(algorithm, 1)
    assert result["frames"] == 2 * 4 * 40
    calls = algorithm.learner_group.foreach_learner(_weight_sum)
    first, second = [call.get() for call in calls]
    assert first == second
    algorithm.stop()


def _weight_sum(learner) -> float:
    return sum(float(p.double().sum()) for p in learner.module.parameters())


def test_results_tell_the_task_the_frames_and_the_scores(tmp_path):
    algorithm = tiny_config().build_algo()
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


def test_the_run_directory_can_be_read_back_by_the_report():
    algorithm = tiny_config("DV3", order="reversed").build_algo()
    train(algorithm, 4)
    directory = algorithm.run_directory.local
    algorithm.stop()
    curriculum = json.loads((directory / "curriculum.json").read_text())
    assert curriculum["tasks"] == ["space_invaders", "breakout"]
    [run] = load_runs([directory])
    assert (run.method, run.setting, list(run.epochs)) == (
        "DV3",
        "reversed",
        [0, 1, 2, 3, 4],
    )


@pytest.mark.parametrize("method", METHODS)
def test_evaluating_a_checkpoint_repeats_what_the_run_logged(method, tmp_path):
    algorithm = tiny_config(method).build_algo()
    train(algorithm, 1)
    algorithm.save_to_path(tmp_path / "checkpoint")
    logged = scores(algorithm).splitlines()[-2:]
    algorithm.stop()
    rows = evaluate_checkpoint(tmp_path / "checkpoint")
    assert [",".join(str(v) for v in row.values()) for row in rows] == logged
    [one] = evaluate_checkpoint(tmp_path / "checkpoint", 2, ["space_invaders"])
    assert (one["eval_task"], one["episodes"]) == ("space_invaders", 2)
