"""A seal is broken by a file that differs, never by one that cannot be read."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from rllib_arrow.checkpoints.seal import (
    CheckpointError,
    DamagedCheckpointError,
    break_seal,
    check_seal,
    seal,
)


@pytest.fixture
def checkpoint(tmp_path) -> Path:
    root = tmp_path / "checkpoint_000001"
    (root / "replay").mkdir(parents=True)
    (root / "replay" / "manifest").write_text("manifest")
    (root / "weights").write_text("weights")
    seal(root)
    return root


def test_a_changed_file_is_damage_and_a_missing_one_is_not(checkpoint):
    check_seal(checkpoint)
    (checkpoint / "weights").write_text("Weights")
    with pytest.raises(DamagedCheckpointError, match="weights does not match"):
        check_seal(checkpoint)
    (checkpoint / "weights").unlink()
    with pytest.raises(CheckpointError, match="weights cannot be read") as caught:
        check_seal(checkpoint)
    assert not isinstance(caught.value, DamagedCheckpointError)


@pytest.mark.parametrize("name", ["seal", "weights", "replay/manifest"])
def test_a_disk_that_does_not_answer_is_no_damage(checkpoint, name, monkeypatch):
    read = Path.read_bytes

    def flaky(path: Path) -> bytes:
        if path == checkpoint / name:
            raise OSError(errno.EIO, "Input/output error")
        return read(path)

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", flaky)
        with pytest.raises(CheckpointError, match=f"{name} cannot be read") as caught:
            check_seal(checkpoint)
        assert not isinstance(caught.value, DamagedCheckpointError)
    check_seal(checkpoint)


def test_a_broken_seal_is_renamed_and_a_new_one_takes_its_place(checkpoint):
    before = (checkpoint / "seal").read_bytes()
    for _ in range(2):  # once more changes nothing
        break_seal(checkpoint)
        assert (checkpoint / "seal.broken").read_bytes() == before
        with pytest.raises(CheckpointError, match="not a whole checkpoint"):
            check_seal(checkpoint)
    seal(checkpoint)
    check_seal(checkpoint)
    assert not (checkpoint / "seal.broken").exists()


def test_the_replay_is_looked_at_only_where_it_is_needed(checkpoint):
    (checkpoint / "replay" / "manifest").write_text("other")
    check_seal(checkpoint, replay=False)
    with pytest.raises(DamagedCheckpointError, match="replay/manifest"):
        check_seal(checkpoint)
