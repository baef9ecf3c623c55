import json
from pathlib import PurePosixPath
from types import SimpleNamespace

import pytest
from pyarrow import fs
from ray.tune import Checkpoint

from rllib_arrow.checkpoints.keeper import CheckpointKeeper, mend_lists

STORE = fs.LocalFileSystem()


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


def make_trial(run, numbers):
    trial = run / "00000_seed=1"
    for number in numbers:
        checkpoint = trial / f"checkpoint_{number:06}"
        checkpoint.mkdir(parents=True)
        (checkpoint / "seal").touch()
    (trial / "evaluations.csv").write_text("scores")
    write_list(trial, numbers)
    return trial


def write_list(trial, numbers):
    """Writes a list that names checkpoints as Tune does: in pickles, as hex."""
    paths = [f"{trial}/checkpoint_{number:06}" for number in numbers]
    content = {"trial_data": [path.encode().hex() for path in paths]}
    path = trial.parent / "experiment_state-2026-01-01.json"
    path.write_text(json.dumps(content))


@pytest.mark.parametrize("keep", [2, 3])
def test_the_newest_stay_whatever_was_deleted_or_left_over_before(tmp_path, keep):
    # Number 1 is gone already; number 6 was being written when the run was killed.
    trial = make_trial(tmp_path, (0, 2, 3, 4, 5, 6))
    newest = Checkpoint(str(trial / "checkpoint_000005"))
    keeper = CheckpointKeeper(keep)
    for _ in range(2):  # once more changes nothing
        keeper.on_checkpoint(1, [], None, newest)
        kept = [f"checkpoint_{n:06}" for n in range(6 - keep, 6)]
        assert names(trial) == [*kept, "checkpoint_000006", "evaluations.csv"]


def test_what_the_written_list_would_go_on_from_stays(tmp_path):
    trial = make_trial(tmp_path, (0, 1, 2, 3, 4))
    keeper, end = CheckpointKeeper(2), trial / "checkpoint_000004"
    write_list(trial, ())  # Tune has not written of any yet
    keeper.on_checkpoint(1, [], None, Checkpoint(str(end)))
    assert len(names(trial)) == 6
    write_list(trial, (0, 1))
    keeper.on_checkpoint(2, [], None, Checkpoint(str(end)))
    kept = [f"checkpoint_{number:06}" for number in (1, 3, 4)]
    assert names(trial) == [*kept, "evaluations.csv"]
    write_list(trial, (0, 1, 2, 3, 4))
    ended = [SimpleNamespace(checkpoint=c) for c in (None, Checkpoint(str(end)))]
    gone = SimpleNamespace(checkpoint=Checkpoint(str(tmp_path / "gone" / "gone")))
    keeper.on_experiment_end([gone, *ended])
    assert names(trial) == [*kept[1:], "evaluations.csv"]


def test_a_damaged_one_counts_for_nothing(tmp_path):
    trial = make_trial(tmp_path, (2, 3, 4, 5))
    (trial / "checkpoint_000004" / "seal").unlink()
    newest = Checkpoint(str(trial / "checkpoint_000005"))
    CheckpointKeeper(2).on_checkpoint(1, [], None, newest)
    kept = ["checkpoint_000003", "checkpoint_000005"]
    assert names(trial) == [*kept, "evaluations.csv"]


def test_a_list_cut_short_is_replaced_by_the_last_whole_one(tmp_path):
    trial = make_trial(tmp_path, (0, 1))
    old = tmp_path / "experiment_state-2026-01-01.json"
    new = tmp_path / "experiment_state-2026-01-02.json"
    variants = tmp_path / "basic-variant-state-2026-01-02.json"
    for path in (old, new, variants):
        path.write_text(json.dumps({"file": path.name}))
    keeper = CheckpointKeeper(2)
    newest = Checkpoint(str(trial / "checkpoint_000001"))
    keeper.on_checkpoint(1, [], None, newest)
    whole = new.read_text()
    new.write_text(whole[:-1])
    keeper.on_checkpoint(2, [], None, newest)  # keeps no list that is not whole
    variants.write_text("{}")  # whole, if different
    mend_lists(STORE, PurePosixPath(tmp_path))
    assert new.read_text() == whole
    assert variants.read_text() == "{}"


def test_nothing_is_deleted_while_the_list_cannot_be_kept(tmp_path, monkeypatch):
    trial = make_trial(tmp_path, (0, 1, 2))

    def full(*args):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("rllib_arrow.checkpoints.keeper.write_aside_in", full)
    newest = Checkpoint(str(trial / "checkpoint_000002"))
    CheckpointKeeper(2).on_checkpoint(1, [], None, newest)
    assert len(names(trial)) == 4


@pytest.mark.parametrize("content", ["", '{"trial_data": ['])
def test_an_empty_list_is_filled_from_the_newest_whole_one_beside_it(tmp_path, content):
    lists = [tmp_path / f"experiment_state-2026-01-0{day}.json" for day in (1, 2, 3, 4)]
    for path in lists:
        path.write_text(json.dumps({"file": path.name}))
    lists[2].write_text("")
    lists[3].write_text(content)
    lines = mend_lists(STORE, PurePosixPath(tmp_path))
    assert json.loads(lists[3].read_text()) == {"file": lists[1].name}
    [line] = lines
    assert line.startswith(f"{lists[3]} is empty or cut: went on from {lists[1]}")
    assert mend_lists(STORE, PurePosixPath(tmp_path)) == []


def test_what_cannot_be_deleted_does_not_keep_tune_from_hearing_of_the_new(
    tmp_path, monkeypatch
):
    trial = make_trial(tmp_path, (0, 1, 2))

    def refuse(checkpoint):
        raise OSError("Directory not empty")

    keeper = CheckpointKeeper(1)
    with monkeypatch.context() as stuck:
        stuck.setattr(keeper, "_delete_older", refuse)
        keeper.on_checkpoint(1, [], None, Checkpoint(str(trial / "checkpoint_000002")))
    assert len(names(trial)) == 4
    keeper.on_checkpoint(2, [], None, Checkpoint(str(trial / "checkpoint_000002")))
    assert names(trial) == ["checkpoint_000002", "evaluations.csv"]
