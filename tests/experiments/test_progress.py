"""What a user sees while a run goes on."""

from __future__ import annotations

import copy
import io
import pickle
import re
from types import SimpleNamespace

import pytest

from rllib_arrow.algorithms.within_epoch import COLLECTING, LEARNING, Phase
from rllib_arrow.experiments.progress import ProgressDisplay, reason
from rllib_arrow.experiments.trial import duration

TRIAL = SimpleNamespace(
    trial_id="a_00000",
    path="/runs/mine/00000_seed=42",
    status="RUNNING",
    evaluated_params={"seed": 42, "curriculum/tasks": ["boxing"]},
)
WAITING = SimpleNamespace(trial_id="a_00001", status="PENDING", evaluated_params={})
RESULT = {
    "curriculum": {
        "epoch": 1,
        "total_epochs": 4,
        "task": "boxing",
        "next_task": "boxing",
        "switch": False,
    },
    "frames": 16384,
    "frames_per_s": 812.4,
    "updates_per_s": 3.21,
    "evaluation": {
        "epoch": 1,
        "boxing": {"return_mean": 12.5, "return_std": 1.0, "episodes": 16},
        "enduro": {"return_mean": 1234.5, "return_std": 1.0, "episodes": 16},
        "ACC": 0.5,
    },
}


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def screen(written: str) -> list[str]:
    """Replays the two control sequences the display uses, as a terminal would."""
    lines: list[str] = []
    for part in re.split(r"(\x1b\[\d+F\x1b\[J)", written):
        up = re.match(r"\x1b\[(\d+)F", part)
        if up:
            del lines[-int(up[1]) :]
        else:
            lines += part.splitlines()
    return lines


class Session:
    """A display with a clock that the test moves."""

    def __init__(self, stream: io.StringIO):
        self.now = 0.0
        self.stream = stream
        self.phases: dict[str, Phase] = {}
        self.display = ProgressDisplay(
            stream, clock=lambda: self.now, phases=lambda: self.phases
        )
        self.display.on_trial_start(0, [TRIAL], TRIAL)

    def tell(self, now: float, epoch: int, doing: str, *updates: float) -> None:
        """Has the trial say what it is doing, at a time."""
        self.now = now
        self.phases = {"00000_seed=42": Phase("boxing", epoch, 4, doing, *updates)}
        self.display.on_step_end(epoch, [TRIAL])

    def epoch(self, number: int, trials=(TRIAL,), **changes) -> None:
        self.now = 60.0 * number
        result = copy.deepcopy(RESULT)
        result["curriculum"].update(epoch=number, **changes)
        if number > 1:
            del result["evaluation"]
        self.display.on_trial_result(number, list(trials), TRIAL, result)


@pytest.mark.parametrize(
    ("seconds", "told"),
    [
        (0, "0 s"),
        (59.9, "59 s"),
        (61, "1 min"),
        (3 * 3600 + 20 * 60, "3 h 20 min"),
        (52 * 3600, "2 d 4 h"),
    ],
)
def test_durations_read_as_one_would_say_them(seconds, told):
    assert duration(seconds) == told


def test_a_file_gets_one_line_per_epoch_with_all_that_matters():
    session = Session(io.StringIO())
    session.epoch(1)
    started, line = session.stream.getvalue().splitlines()
    assert started == "[seed=42, tasks=boxing] started"
    assert line == (
        "[seed=42, tasks=boxing] epoch 1/4 boxing, 16,384 frames, 812 frames/s, "
        "3.21 updates/s, 3 min left | scores after epoch 1: boxing 12.5  enduro 1,234"
    )
    assert "\x1b" not in session.stream.getvalue()


def test_scores_appear_in_a_file_only_when_they_are_new():
    session = Session(io.StringIO())
    session.epoch(1)
    session.epoch(2)
    assert "scores" not in session.stream.getvalue().splitlines()[-1]


def test_task_switches_are_told():
    for stream in (io.StringIO(), Terminal()):
        session = Session(stream)
        session.epoch(2, switch=True, next_task="enduro")
        assert (
            "[seed=42, tasks=boxing] task switch after epoch 2: boxing -> enduro\n"
            in stream.getvalue()
        )


def test_what_died_and_was_replaced_is_told_before_its_epoch():
    for stream in (io.StringIO(), Terminal()):
        session = Session(stream)
        result = {**RESULT, "recovered": "env runner 1 died in 'sample'; all is well"}
        session.display.on_trial_result(1, [TRIAL], TRIAL, result)
        told = stream.getvalue().splitlines()[1]
        assert told == (
            "[seed=42, tasks=boxing] env runner 1 died in 'sample'; all is well"
        )


def test_the_end_of_a_curriculum_has_no_next_task():
    session = Session(Terminal())
    session.epoch(4, next_task=None)
    assert "  boxing  epoch 4/4 [" in "\n".join(screen(session.stream.getvalue()))


def test_a_terminal_shows_one_block_that_is_redrawn(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    session = Session(Terminal())
    for number in (1, 2, 3):
        session.epoch(number, trials=(TRIAL, WAITING))
        session.display.on_step_end(number, [TRIAL, WAITING])
    shown = screen(session.stream.getvalue())
    assert (
        shown
        == [
            "[seed=42, tasks=boxing] started",
            "seed=42, tasks=boxing",
            "  boxing  epoch 3/4 [##################......]",
            "  16,384 frames, 812 frames/s, 3.21 updates/s  3 min so far, 1 min left",
            "  scores after epoch 1: boxing 12.5  enduro 1,234",
            "1 of 2 trials wait for resources",
        ]
        or "1 min left" in shown[3]
    )


def test_a_block_never_wraps(monkeypatch):
    monkeypatch.setenv("COLUMNS", "30")
    session = Session(Terminal())
    session.epoch(1)
    block = screen(session.stream.getvalue())[1:]
    assert len(block) == 4 and max(map(len, block)) <= 29


def test_time_left_counts_only_epochs_of_this_session():
    session = Session(io.StringIO())
    session.now = 100.0
    result = copy.deepcopy(RESULT)
    result["curriculum"].update(epoch=3)
    session.display.on_trial_result(1, [TRIAL], TRIAL, result)
    assert "1 min left" in session.stream.getvalue()


def test_time_left_shrinks_while_an_epoch_runs(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    session = Session(Terminal())
    for number in (1, 2, 3):
        session.epoch(number)
    session.now += 20
    session.display.on_step_end(3, [TRIAL])
    assert "3 min so far, 40 s left" in screen(session.stream.getvalue())[-2]


def test_the_last_line_of_a_trial_tells_how_it_ended():
    session = Session(Terminal())
    session.epoch(1)
    session.display.on_trial_complete(1, [TRIAL], TRIAL)
    session.display.on_experiment_end([TRIAL])
    assert screen(session.stream.getvalue())[-1] == (
        "[seed=42, tasks=boxing] finished after 1 min: "
        "scores after epoch 1: boxing 12.5  enduro 1,234"
    )


def test_a_file_gets_a_line_a_minute_on_the_epoch_under_way():
    session = Session(io.StringIO())
    session.tell(30.0, 1, COLLECTING)
    session.tell(61.0, 1, COLLECTING)
    session.tell(90.0, 1, LEARNING, 100, 1800, 25.0)
    session.tell(122.0, 1, LEARNING, 120, 1800, 30.0)
    session.tell(123.0, 1, LEARNING, 121, 1800, 31.0)
    lines = session.stream.getvalue().splitlines()
    told = "[seed=42, tasks=boxing] epoch 1/4 boxing: "
    # 1,680 updates at a quarter of a second each: seven minutes.
    assert lines[1:] == [
        f"{told}collecting",
        f"{told}update 120 of 1,800, 7 min left in this epoch",
    ]


def test_a_learner_that_falls_silent_is_not_said_to_be_almost_done():
    session = Session(io.StringIO())
    session.tell(10.0, 1, LEARNING, 150, 200, 75.0)
    for session.now in (90.0, 200.0):
        session.display.on_step_end(1, [TRIAL])
    *_, before, after = session.stream.getvalue().splitlines()
    assert before.endswith(": update 150 of 200, no news for 1 min")
    assert after.endswith(": update 150 of 200, no news for 3 min")


def test_a_terminal_shows_the_first_epoch_under_way(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    session = Session(Terminal())
    session.tell(60.0, 1, LEARNING, 120, 1800, 30.0)
    session.now += 60
    session.display.on_step_end(1, [TRIAL])
    assert screen(session.stream.getvalue()) == [
        "[seed=42, tasks=boxing] started",
        "seed=42, tasks=boxing",
        "  epoch 1/4 boxing: update 120 of 1,800, 6 min left in this epoch",
        "  first epoch, 2 min so far",
    ]


def test_a_phase_of_an_epoch_that_is_over_is_not_shown(monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    session = Session(Terminal())
    session.tell(50.0, 1, LEARNING, 1799, 1800, 49.0)
    session.epoch(1)
    session.now += 1
    session.display.on_step_end(1, [TRIAL])  # the board has not heard of epoch 2 yet
    assert "update" not in "".join(screen(session.stream.getvalue())[:3])
    session.tell(62.0, 2, COLLECTING)
    assert screen(session.stream.getvalue())[2:4] == [
        "  boxing  epoch 1/4 [######..................]",
        "  epoch 2/4 boxing: collecting",
    ]


@pytest.mark.parametrize("stream", [Terminal, io.StringIO])
def test_an_interrupt_leaves_the_last_scores_on_the_screen(stream):
    session = Session(stream())
    session.epoch(1)
    session.epoch(2)
    session.display.on_experiment_end([TRIAL])
    assert screen(session.stream.getvalue())[-1] == (
        "[seed=42, tasks=boxing] stopped after epoch 2/4, after 2 min: "
        "scores after epoch 1: boxing 12.5  enduro 1,234"
    )


def test_an_interrupt_before_the_first_epoch_says_so():
    session = Session(Terminal())
    session.now = 7.0
    session.display.on_experiment_end([TRIAL, WAITING])
    last = screen(session.stream.getvalue())[-1]
    assert last == "[seed=42, tasks=boxing] stopped after 7 s"


ERRORS = {
    # A worker's traceback within the trial's.
    "ray::ARROW.train() (pid=7)\n  File ...\n    x()\n"
    "ray.exceptions.RayTaskError(FloatingPointError): ray::Learner.apply() (pid=9)\n"
    "  File ...\nFloatingPointError: image_loss is nan in update 3 of epoch 2.\n": (
        "FloatingPointError: image_loss is nan in update 3 of epoch 2"
    ),
    # Ray's advice after the reason.
    "Traceback ...\nray.exceptions.ActorDiedError: The actor died.\n\tpid: 5\n"
    "The actor is dead because its worker process has died.\n": (
        "ActorDiedError: The actor died"
    ),
    "out of words": "out of words",
    "": "no reason given",
}


@pytest.mark.parametrize(("text", "line"), ERRORS.items())
def test_the_reason_of_a_failure_is_one_line(text, line, tmp_path):
    assert reason(text) == line
    session = Session(io.StringIO())
    (tmp_path / "error.txt").write_text(text)
    failed = SimpleNamespace(**vars(TRIAL), error_file=str(tmp_path / "error.txt"))
    session.display.on_trial_recover(1, [failed], failed)
    assert session.stream.getvalue().splitlines()[-1] == (
        f"[seed=42, tasks=boxing] failed ({line}), "
        "to be resumed from its last checkpoint after 0 s"
    )


def test_a_display_that_tune_saved_starts_afresh():
    session = Session(io.StringIO())
    again = pickle.loads(pickle.dumps(session.display))
    again._stream = io.StringIO()
    again.on_trial_start(0, [TRIAL], TRIAL)
    assert again.stream.getvalue() == "[seed=42, tasks=boxing] started\n"
