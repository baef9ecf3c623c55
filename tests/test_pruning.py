import pytest
from ray.tune import Checkpoint

from rllib_arrow.pruning import CheckpointPruner


def names(folder) -> list[str]:
    return sorted(path.name for path in folder.iterdir())


@pytest.mark.parametrize("keep", [2, 3])
def test_the_newest_stay_whatever_was_deleted_or_left_over_before(tmp_path, keep):
    # Number 1 is gone already; number 6 was being written when the run was killed.
    for number in (0, 2, 3, 4, 5, 6):
        folder = tmp_path / f"checkpoint_{number:06}"
        folder.mkdir()
        (folder / "weights").write_text("w")
    (tmp_path / "evaluations.csv").write_text("scores")
    newest = Checkpoint(str(tmp_path / "checkpoint_000005"))
    pruner = CheckpointPruner(keep)
    for _ in range(2):  # once more changes nothing
        pruner.on_checkpoint(1, [], None, newest)
        kept = [f"checkpoint_{n:06}" for n in range(6 - keep, 6)]
        assert names(tmp_path) == [*kept, "checkpoint_000006", "evaluations.csv"]
