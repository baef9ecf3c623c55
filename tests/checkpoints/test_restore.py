"""Restoring: the seal is checked once, and to act nothing is started or written."""

from __future__ import annotations

import tempfile
from pathlib import Path

import psutil
import pytest
import torch
from ray.rllib.algorithms.algorithm import Algorithm
from ray.rllib.core.rl_module import RLModule

from rllib_arrow import ARROW
from rllib_arrow.checkpoints import restore_to_act as acting
from rllib_arrow.checkpoints import save_and_restore
from rllib_arrow.checkpoints.seal import check_seal
from rllib_arrow.errors import UserError
from tests.algorithms.tiny import digest, save_three, scores, tiny_config, train

pytestmark = pytest.mark.usefixtures("ray_two_cpus")


@pytest.fixture(scope="module")
def run(ray_two_cpus, tmp_path_factory):
    """A checkpoint, its weights, and the directory of the run that wrote it."""
    algorithm = tiny_config().build_algo()
    train(algorithm, 1)
    path = Path(algorithm.save_to_path(tmp_path_factory.mktemp("run") / "one"))
    yield path, digest(algorithm), Path(algorithm.run_directory.local)
    algorithm.stop()


def replay_actors() -> set[int]:
    """The processes of this session's cluster, which this process has started."""
    processes = psutil.Process().children(recursive=True)
    return {process.pid for process in processes if is_replay(process)}


def is_replay(process: psutil.Process) -> bool:
    try:
        return any("JournaledReplayActor" in text for text in process.cmdline())
    except psutil.NoSuchProcess:
        return False


def tree(root: Path) -> dict[str, float]:
    return {str(path): path.stat().st_mtime_ns for path in sorted(root.rglob("*"))}


def test_acting_starts_no_replay_and_writes_nothing_anywhere(
    run, tmp_path, monkeypatch
):
    path, saved, run_directory = run
    storage = tmp_path / "home" / "ray_results"
    monkeypatch.setattr("ray.tune.trainable.trainable.DEFAULT_STORAGE_PATH", storage)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    roots = (path, run_directory, tmp_path)
    trees, actors = [tree(root) for root in roots], replay_actors()
    assert actors  # the one of the run itself, which is still alive

    algorithm = acting.restore_to_act(path)
    assert replay_actors() == actors and algorithm.replay is None
    assert digest(algorithm) == saved
    assert set(algorithm.evaluate()) >= {"breakout", "space_invaders", "ACC"}
    for method in (algorithm.train, algorithm.save_to_path):
        with pytest.raises(UserError, match="ARROW was restored to act"):
            method()
    algorithm.stop()

    acting.evaluate_checkpoint(path, episodes=1, tasks=["breakout"])
    assert replay_actors() == actors
    assert [tree(root) for root in roots] == trees


def test_an_evaluation_counts_the_frames_of_all_env_runners(tmp_path):
    config = tiny_config().env_runners(num_env_runners=2, num_cpus_per_env_runner=0)
    algorithm = config.build_algo()
    train(algorithm, 1)
    path = algorithm.save_to_path(tmp_path / "two")
    [row] = acting.evaluate_checkpoint(path, episodes=1, tasks=["breakout"])
    assert row["frames"] == algorithm.config.frames_per_epoch == 2 * 4 * 40
    journal = Path(algorithm.run_directory.local) / "replay_journal"
    assert any(journal.iterdir())
    algorithm.stop()
    assert not journal.exists()  # nobody would read it


@pytest.mark.parametrize(
    "restore",
    [
        ARROW.from_checkpoint,
        Algorithm.from_checkpoint,
        acting.restore_to_act,
        lambda path: tiny_config().build_algo().restore(str(path)),
        lambda path: tiny_config().build_algo().restore_from_path(path),
        lambda path: tiny_config().build_algo().load_checkpoint(str(path)),
    ],
)
def test_the_seal_is_checked_once_per_restore(run, restore, monkeypatch):
    path, *_ = run
    checked = []

    def counted(root, replay=True):
        checked.append((str(root), replay))
        check_seal(root, replay)

    monkeypatch.setattr(save_and_restore, "check_seal", counted)
    monkeypatch.setattr(acting, "check_seal", counted)
    algorithm = restore(str(path))
    assert checked == [(str(path), restore is not acting.restore_to_act)]
    if algorithm is not None:
        algorithm.stop()


def test_what_cannot_be_read_for_a_moment_is_passed_over_and_kept(tmp_path):
    algorithm = tiny_config().build_algo()
    paths, truth = save_three(algorithm, tmp_path)
    # A directory in the place of a file cannot be read: a segment, and the weights.
    [segment, *_] = sorted((paths[2] / "replay").glob("segment-*"))
    away = [segment, paths[1] / "learner_group/learner/rl_module/module_state.pkl"]
    away = [file for file in away if file.exists()]
    for file in away:
        file.rename(file.with_suffix(".away"))
        file.mkdir()
    algorithm.load_checkpoint(str(paths[2]))
    assert algorithm.iteration == (1 if len(away) == 2 else 2)
    assert all((path / "seal").exists() for path in paths)

    for file in away:  # the disk is back
        file.rmdir()
        file.with_suffix(".away").rename(file)
    algorithm.load_checkpoint(str(paths[2]))
    assert algorithm.iteration == 3
    assert (digest(algorithm), scores(algorithm)) == truth
    algorithm.stop()


def test_acting_asks_for_no_compiler(run, monkeypatch):
    path, *_ = run
    taken = classmethod(lambda cls, path, config, **rest: config)
    monkeypatch.setattr(ARROW, "from_checkpoint", taken)
    assert acting.restore_to_act(path).use_compile is False


def test_weights_restored_alone_are_those_that_act(run):
    path, *_ = run
    algorithm = tiny_config().build_algo()
    train(algorithm, 2)
    before = algorithm.curriculum
    algorithm.get_module()
    part = "learner_group/learner/rl_module"
    algorithm.restore_from_path(path / part, component=part)
    saved = RLModule.from_checkpoint(path / part / "default_policy").state_dict()
    found = algorithm.get_module().state_dict()
    assert all(torch.equal(found[name], saved[name]) for name in found)
    algorithm.set_state({"learner_group": algorithm.learner_group.get_state()})
    assert algorithm.curriculum is before
    algorithm.stop()
