"""Damaged input of every kind: a clear error, nothing executed, nothing changed.

Cases are drawn from seeded generators. A mutated file may by chance still be valid;
what it must never do is end in anything but the one kind of error its reader has.
"""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import numpy as np
import pytest

from benchmarks.report import write_run
from rllib_arrow.checkpoints.restore_to_act import restore_to_act
from rllib_arrow.checkpoints.seal import CheckpointError, seal
from rllib_arrow.errors import UserError
from rllib_arrow.experiments.cli import main
from rllib_arrow.experiments.experiment import read_experiment
from rllib_arrow.replay import AugmentedReplay, Chunk
from rllib_arrow.replay.snapshot import SnapshotError
from rllib_arrow.runs.read import read_runs
from tests.algorithms.tiny import digest, tiny_config, train

EXPERIMENT = b"""
mine:
  run: ARROW
  env: Continual
  stop: {training_iteration: 5}
  checkpoint_config: {checkpoint_frequency: 2, num_to_keep: 3}
  config:
    curriculum: {suite: minatar, tasks: [breakout, asterix], epochs_per_task: 3}
    ltdm_fraction: {grid_search: [0.25, 0.5]}
    world_model_lr: 1.0e-4
    model_size: {size: micro, gru_units: 64}
"""
TOKENS = (
    *(b"null", b"true", b"-1", b"1e400", b".nan", b"[]", b"{}", b"'", b'"', b"\t"),
    *(b"!!python/object/apply:os.system ['true']", b"&a *a", b"<<: *b", b"\xff\x00"),
    *(b"\n", b": ", b"- ", b"#", b"%", b"0x10", b"2026-01-01", b"a" * 300),
)


def mutate(data: bytes, rng: random.Random) -> bytes:
    """Cuts, flips, repeats or inserts something, once to three times."""
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(data) + 1)
        span = rng.randint(1, 12)
        kind = rng.randrange(4)
        if kind == 0:
            data = data[:at] + data[at + span :]
        elif kind == 1 and at < len(data):
            flipped = data[at] ^ (1 << rng.randrange(8))
            data = data[:at] + bytes([flipped]) + data[at + 1 :]
        elif kind == 2:
            data = data[:at] + data[at : at + span] + data[at:]
        else:
            data = data[:at] + rng.choice(TOKENS) + data[at:]
    return data


def contents(root: Path) -> dict[str, bytes]:
    files = (path for path in root.rglob("*") if path.is_file())
    return {path.relative_to(root).as_posix(): path.read_bytes() for path in files}


def test_mutated_tuned_examples_are_read_or_refused_in_one_line(tmp_path):
    rng, refused = random.Random(1), 0
    for _ in range(700):
        file = tmp_path / "mutated.yaml"
        file.write_bytes(mutate(EXPERIMENT, rng))
        try:
            read_experiment(file)
        except UserError as error:
            refused += 1
            assert "\n" not in str(error) and "mutated.yaml" in str(error)
    assert refused > 300


def test_mutated_settings_on_the_command_line_are_taken_or_refused(tmp_path):
    file = tmp_path / "good.yaml"
    file.write_bytes(EXPERIMENT)
    rng, refused = random.Random(2), 0
    good = (b"ltdm_fraction=0.5", b"curriculum.cycles=2", b"stop.frames=1000")
    for _ in range(300):
        text = mutate(rng.choice(good), rng).decode("utf-8", "replace")
        try:
            read_experiment(file, [text])
        except UserError as error:
            refused += 1
            # What was typed may hold a line break; the command prints it as one line.
            assert str(error).startswith("--set")
    assert refused > 100
    assert contents(tmp_path) == {"good.yaml": EXPERIMENT}


def test_mutated_snapshots_are_never_loaded_as_something_else(tmp_path):
    rng = np.random.default_rng(3)
    replay = AugmentedReplay(4, 8, 0.5, seed=1)
    for _ in range(5):
        chunk = Chunk(
            rng.integers(0, 256, (8, 16, 16, 3), dtype=np.uint8),
            rng.integers(0, 5, 8),
            rng.normal(size=8).astype(np.float32),
            rng.random(8) < 0.2,
            rng.random(8) < 0.2,
        )
        replay.add(chunk)
    replay.save(tmp_path / "snapshot")
    whole, truth = contents(tmp_path), replay.sample(4, 4)
    mutations = random.Random(4)
    for _ in range(300):
        name = mutations.choice(sorted(whole))
        (tmp_path / name).write_bytes(mutate(whole[name], mutations))
        changed = contents(tmp_path)
        try:
            loaded = AugmentedReplay.load(tmp_path / "snapshot")
        except SnapshotError as error:
            assert "\n" not in str(error) and "snapshot" in str(error)
        else:
            # A mutation that undid itself; then nothing may have changed.
            sample = loaded.sample(4, 4)
            assert all(np.array_equal(sample[key], truth[key]) for key in truth)
        assert contents(tmp_path) == changed
        (tmp_path / name).write_bytes(whole[name])


def test_mutated_evaluations_are_read_or_refused_with_file_and_line(tmp_path):
    run = tmp_path / "run"
    write_run(run, "ARROW", "minatar", "default", 1, ["breakout", "asterix"])
    whole = contents(run)
    rng, refused = random.Random(5), 0
    for _ in range(300):
        name = rng.choice(sorted(whole))
        (run / name).write_bytes(mutate(whole[name], rng))
        try:
            read_runs([run])
        except UserError as error:
            refused += 1
            assert "\n" not in str(error) and str(run) in str(error)
        (run / name).write_bytes(whole[name])
    assert refused > 100


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory, ray_two_cpus) -> Path:
    """A checkpoint as an ARROW run writes it."""
    algorithm = tiny_config().build_algo()
    train(algorithm, 1)
    path = algorithm.save_to_path(tmp_path_factory.mktemp("fuzz") / "checkpoint")
    algorithm.stop()
    return Path(path)


def damage(root: Path, name: str, whole: bytes, rng: random.Random) -> bool:
    """Changes, cuts or removes one file; returns whether anything is different."""
    kind, file = rng.randrange(4), root / name
    if kind == 0:
        file.unlink()
    elif kind == 1:
        file.write_bytes(whole[: rng.randrange(len(whole))])
    else:
        file.write_bytes(mutate(whole, rng))
    return not file.exists() or file.read_bytes() != whole


def test_a_damaged_checkpoint_is_refused_before_anything_of_it_is_unpickled(
    checkpoint, monkeypatch, capsys
):
    def unpickled(*args):
        pytest.fail("unpickled a damaged checkpoint")

    monkeypatch.setattr(
        "rllib_arrow.checkpoints.restore_to_act.pickle.loads", unpickled
    )
    whole = contents(checkpoint)
    # An evaluation does not read the replay memory; the test of snapshots does.
    names = sorted(name for name in whole if not name.startswith("replay/"))
    shutil.rmtree(checkpoint / "replay")
    assert len(names) > 10 and "seal" in names
    rng = random.Random(6)
    for case in range(400):
        name = rng.choice(names)
        if damage(checkpoint, name, whole[name], rng):
            changed = contents(checkpoint)
            with pytest.raises(CheckpointError) as caught:
                restore_to_act(checkpoint)
            told = str(caught.value)
            assert "\n" not in told and str(checkpoint / name) in told
            if case % 4 == 0:
                assert main(["evaluate", str(checkpoint)]) == 2
                [line] = capsys.readouterr().err.splitlines()
                assert str(checkpoint) in line
            assert contents(checkpoint) == changed
        (checkpoint / name).write_bytes(whole[name])
    (checkpoint / "replay").mkdir()
    for name in whole:
        (checkpoint / name).write_bytes(whole[name])


def test_training_does_not_go_on_from_a_damaged_checkpoint(checkpoint):
    whole = contents(checkpoint)
    algorithm = tiny_config().build_algo()
    before = digest(algorithm)
    # Weights with one flipped bit would load without a word.
    [name] = [n for n in whole if n.endswith("default_policy/module_state.pkl")]
    [segment] = [n for n in whole if n.startswith("replay/segment")]
    for damaged, refused in ((name, CheckpointError), (segment, SnapshotError)):
        content = bytearray(whole[damaged])
        content[-20] ^= 1
        (checkpoint / damaged).write_bytes(content)
        with pytest.raises(refused, match=Path(damaged).name):
            algorithm.restore_from_path(checkpoint)
        assert digest(algorithm) == before
        (checkpoint / damaged).write_bytes(whole[damaged])
    algorithm.restore_from_path(checkpoint)
    assert digest(algorithm) != before
    algorithm.stop()


@pytest.mark.parametrize("content", [b"", b"not a pickle", b"\x80\x04K\x01."])
def test_a_checkpoint_that_never_was_right_is_named(content, tmp_path, capsys):
    (tmp_path / "rllib_checkpoint.json").write_text("{}")
    (tmp_path / "class_and_ctor_args.pkl").write_bytes(content)
    (tmp_path / "replay").mkdir()
    with pytest.raises(CheckpointError, match="replay/manifest was not written"):
        seal(tmp_path)
    (tmp_path / "replay" / "manifest").touch()
    seal(tmp_path)
    with pytest.raises(CheckpointError, match=r"class_and_ctor_args\.pkl is damaged"):
        restore_to_act(tmp_path)
    assert main(["evaluate", str(tmp_path)]) == 2
    [line] = capsys.readouterr().err.splitlines()
    assert "class_and_ctor_args.pkl" in line
