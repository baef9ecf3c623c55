"""Diagnostics in a run: they change nothing, lose nothing and say what they saw."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from rllib_arrow.inside.probe_set import ProbeSet
from rllib_arrow.runs.inside import Inside, Memory, read_findings
from tests.algorithms.tiny import digest, scores, tiny_config, train

pytestmark = pytest.mark.usefixtures("ray_two_cpus")


def files(directory: Path) -> dict[str, bytes]:
    """What diagnostics wrote, by name."""
    wanted = ("inside.csv", "memory.csv", "probes/*", "strips/*")
    found = sorted(path for pattern in wanted for path in directory.glob(pattern))
    return {str(path.relative_to(directory)): path.read_bytes() for path in found}


@pytest.mark.parametrize("method", ["ARROW", "TES-SAC"])
def test_a_run_learns_the_same_when_looked_into_and_goes_on_as_if_uninterrupted(
    method, tmp_path
):
    plain = tiny_config(method).build_algo()
    train(plain, 4)
    truth = digest(plain), scores(plain)
    assert files(plain.run_directory.local) == {}
    plain.stop()

    looked = tiny_config(method).continual(diagnostics=True).build_algo()
    train(looked, 2)
    looked.save_to_path(tmp_path / "half")
    *_, last = train(looked, 2)
    assert (digest(looked), scores(looked)) == truth

    directory = looked.run_directory.local
    seen = files(directory)
    check_what_was_seen(directory, method)
    in_results = last["learners"]["default_policy"]["inside"]
    assert 0 <= in_results["breakout"]["actor"]["agreement"] <= 1
    assert in_results["plasticity"]["critic"]["weight_norm"] > 0

    for name in seen:
        (directory / name).unlink()
    looked.restore_from_path(tmp_path / "half")
    train(looked, 2)
    assert (digest(looked), scores(looked)) == truth
    assert files(directory) == seen
    looked.stop()


def check_what_was_seen(directory: Path, method: str) -> None:
    inside = read_findings(Inside, directory / "inside.csv")
    by_task = {task: {r.epoch for r in inside if r.task == task} for task in TASKS}
    # The untrained network, the end of the task's own training, evaluations since.
    assert by_task == {"breakout": {0, 2, 3, 4}, "space_invaders": {0, 4}}
    assert {r.epoch for r in inside if not r.task} == {1, 2, 3, 4}
    at_its_end = {
        (r.part, r.measure): r.value
        for r in inside
        if r.epoch == 2 and r.task == "breakout"
    }
    kept = {"cka": 1.0, "kl": 0.0, "agreement": 1.0, "drift": 0.0}
    for (part, measure), value in at_its_end.items():
        assert value == kept.get(measure, value), (part, measure)

    memory = read_findings(Memory, directory / "memory.csv")
    for epoch in (1, 2, 3, 4):
        shares = [
            r.value for r in memory if r.epoch == epoch and r.measure == "minibatches"
        ]
        assert sum(shares) == pytest.approx(1, abs=1e-5)
    probe = ProbeSet.from_bytes((directory / "probes/1_breakout.npz").read_bytes())
    assert probe.rows["obs"].shape == (16, 24, 16, 16, 3)
    assert not np.array_equal(probe.rows["obs"][:, 0], probe.rows["obs"][:, -1])
    strips = sorted(path.name for path in directory.glob("strips/*"))
    draws = method != "TES-SAC"
    assert strips == draws * [
        "1_breakout_at_its_end.png",
        "1_breakout_at_the_end.png",
        "2_space_invaders_at_its_end.png",
        "2_space_invaders_at_the_end.png",
    ]


TASKS = ("breakout", "space_invaders")
