"""The curriculum as a pure function of the epoch."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rllib_arrow.curriculum.exposure import Exposure
from rllib_arrow.curriculum.schedule import Curriculum
from rllib_arrow.envs.suites import SUITES

MINATAR = SUITES["minatar"].tasks


def curriculum(**fields) -> Curriculum:
    return Curriculum.from_dict({"suite": "minatar", "epochs_per_task": 2, **fields})


def test_the_papers_default_curriculum_trains_each_game_for_90_epochs():
    paper = Curriculum.from_dict({"suite": "atari", "epochs_per_task": 90})
    assert paper.total_epochs == 540
    assert paper.boundaries == (90, 180, 270, 360, 450)
    assert paper.setting == paper.order == "default"
    assert [paper.task_at(e) for e in (0, 89, 90, 539)] == [
        "ms_pacman",
        "ms_pacman",
        "boxing",
        "enduro",
    ]
    assert paper.exposures[1] == Exposure("boxing", 1, 90, 180)


def test_the_papers_two_cycles_have_45_epochs_an_exposure():
    paper = Curriculum.from_dict(
        {"suite": "coinrun", "epochs_per_task": 45, "cycles": 2}
    )
    assert paper.setting == "two_cycle" and paper.total_epochs == 540
    assert paper.task_at(269) == "nb_rt_ga_ma_ca" and paper.task_at(270) == "coinrun"
    assert paper.exposures[6] == Exposure("coinrun", 2, 270, 315)


def test_the_reversed_order_turns_tasks_and_their_budgets_round():
    turned = curriculum(
        tasks=["breakout", "freeway"], order="reversed", epochs_per_task=[3, 1]
    )
    assert turned.task_names == ("freeway", "breakout")
    assert turned.epochs_of_tasks == (1, 3)
    assert [turned.task_at(e) for e in range(4)] == ["freeway"] + ["breakout"] * 3
    assert turned.setting == turned.order == "reversed"


def test_boundaries_are_where_a_new_exposure_begins():
    plan = curriculum(tasks=["breakout", "freeway"], epochs_per_task=[1, 2], cycles=2)
    assert [plan.task_at(e)[0] for e in range(6)] == list("bffbff")
    assert plan.boundaries == (1, 3, 4)
    repeated = curriculum(tasks=["breakout"], cycles=3)
    assert repeated.boundaries == (2, 4)
    assert {repeated.task_at(e) for e in range(6)} == {"breakout"}


def test_an_exposure_that_ends_early_moves_those_after_it():
    plan = curriculum(tasks=["breakout", "freeway"], epochs_per_task=3, cycles=2)
    cut = plan.ended_early(1).ended_early(6)
    assert [cut.task_at(e)[0] for e in range(cut.total_epochs)] == list("bfffbbfff")
    spans = [(e.task[0], e.cycle, e.start, e.end) for e in cut.exposures]
    assert spans == [("b", 1, 0, 1), ("f", 1, 1, 4), ("b", 2, 4, 6), ("f", 2, 6, 9)]
    assert plan.total_epochs == 12  # the plan itself is as it was
    # An end where an exposure ends anyway changes nothing.
    assert plan.ended_early(3).exposures == plan.exposures


@pytest.mark.parametrize(
    ("switch", "complaint"),
    [
        ("plateau", r"switch \('plateau'\)"),
        ({"rule": "plato"}, "plato.*plateau"),
        ({"patience": 0}, r"patience \(0\)"),
        ({"min_rise": -1}, r"min_rise \(-1\)"),
        ({"min_rise": True}, r"min_rise \(True\)"),
        ({"patiense": 2}, "patiense.*patience"),
    ],
)
def test_a_rule_that_cannot_be_is_refused_in_one_line(switch, complaint):
    with pytest.raises(ValueError, match=complaint) as caught:
        curriculum(switch=switch)
    assert "\n" not in str(caught.value)


def test_a_rule_has_defaults_and_survives_a_round_trip():
    plan = curriculum(switch={"rule": "plateau"})
    assert plan.switch == {"rule": "plateau", "patience": 3, "min_rise": 0.0}
    assert Curriculum.from_dict(plan.to_dict()) == plan
    assert "switch" not in curriculum().to_dict()


@pytest.mark.parametrize(
    ("fields", "setting"),
    [
        ({}, "default"),
        ({"order": "reversed"}, "reversed"),
        ({"cycles": 2}, "two_cycle"),
        ({"cycles": 3}, "three_cycle"),
        ({"cycles": 10}, "ten_cycle"),
        ({"cycles": 11}, "11_cycle"),
        ({"cycles": 2, "order": "reversed"}, "two_cycle_reversed"),
        ({"tasks": ["asterix"]}, "single"),
        ({"tasks": ["asterix"], "cycles": 2, "order": "reversed"}, "single"),
    ],
)
def test_the_setting_names_the_kind_of_curriculum(fields, setting):
    assert curriculum(**fields).setting == setting


@given(
    tasks=st.lists(st.sampled_from(MINATAR), min_size=1, unique=True),
    order=st.sampled_from(["default", "reversed"]),
    cycles=st.integers(1, 4),
    data=st.data(),
)
def test_every_epoch_has_the_task_that_spelling_it_out_gives(
    tasks, order, cycles, data
):
    count = len(tasks)
    epochs = data.draw(
        st.lists(st.integers(1, 5), min_size=count, max_size=count) | st.integers(1, 5)
    )
    plan = curriculum(tasks=tasks, order=order, cycles=cycles, epochs_per_task=epochs)
    budgets = epochs if isinstance(epochs, list) else [epochs] * count
    pairs = list(zip(tasks, budgets, strict=True))
    if order == "reversed":
        pairs.reverse()
    spelled_out = [task for task, budget in pairs for _ in range(budget)] * cycles
    assert [plan.task_at(e) for e in range(plan.total_epochs)] == spelled_out
    for exposure in plan.exposures:
        assert spelled_out[exposure.start : exposure.end] == [exposure.task] * (
            exposure.end - exposure.start
        )
    assert Curriculum.from_dict(json.loads(json.dumps(plan.to_dict()))) == plan


@pytest.mark.parametrize("epoch", [-1, 10, 11])
def test_there_is_no_task_before_the_start_or_after_the_end(epoch):
    with pytest.raises(ValueError, match=rf"epoch \({epoch}\) must be in 0..9"):
        curriculum().task_at(epoch)


def test_own_tasks_keep_their_specification_under_their_name():
    own = {"id": "Mine-v0", "kwargs": {"size": 3}, "name": "mine"}
    plan = curriculum(tasks=["breakout", own, {"id": "Other-v0"}])
    assert plan.task_names == ("breakout", "mine", "Other-v0")
    assert plan.spec("mine") == own and plan.spec("breakout") == "breakout"
    assert plan.is_custom("mine") and not plan.is_custom("breakout")
    assert Curriculum.from_dict(plan.to_dict()) == plan
    alone = Curriculum.from_dict(
        {"suite": "custom", "tasks": [own], "epochs_per_task": 1}
    )
    assert alone.setting == "single"


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"suit": "atari"}, "unknown curriculum key 'suit': did you mean 'suite'?"),
        ({"suite": "minatari"}, "did you mean 'minatar'?"),
        ({"suite": None}, "unknown suite None"),
        ({"suite": "custom"}, r"tasks \(\[\]\) must name at least one"),
        ({"tasks": []}, r"tasks \(\[\]\) must name at least one"),
        ({"tasks": "breakout"}, r"tasks \('breakout'\) must be a list"),
        ({"tasks": ["brekout"]}, "did you mean 'breakout'?"),
        ({"tasks": [3]}, "unknown task of suite 'minatar' 3"),
        ({"tasks": [None]}, "unknown task of suite 'minatar' None"),
        ({"tasks": ["breakout", "breakout"]}, "task 'breakout' occurs twice"),
        ({"tasks": [{"idd": "A-v0"}]}, "did you mean 'id'?"),
        ({"order": "reverse"}, "did you mean 'reversed'?"),
        ({"order": ["default"]}, "unknown order"),
        ({"epochs_per_task": 0}, r"epochs_per_task \(0\) must be an integer >= 1"),
        ({"epochs_per_task": -3}, r"epochs_per_task \(-3\)"),
        ({"epochs_per_task": 2.5}, r"epochs_per_task \(2.5\)"),
        ({"epochs_per_task": True}, r"epochs_per_task \(True\)"),
        ({"epochs_per_task": "90"}, r"epochs_per_task \('90'\)"),
        ({"epochs_per_task": None}, r"epochs_per_task \(None\)"),
        ({"epochs_per_task": [2, 2]}, "one for each of the 5 tasks"),
        ({"epochs_per_task": [2, 2, 2, 2, 0]}, r"epochs_per_task \(0\)"),
        ({"cycles": 0}, r"cycles \(0\) must be an integer >= 1"),
        ({"cycles": "2"}, r"cycles \('2'\)"),
    ],
)
def test_a_mistake_is_answered_in_one_line_with_what_is_allowed(fields, message):
    with pytest.raises(ValueError, match=message) as error:
        curriculum(**fields)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("missing", ["suite", "epochs_per_task"])
def test_what_has_no_default_must_be_given(missing):
    given = {"suite": "minatar", "epochs_per_task": 1}
    del given[missing]
    with pytest.raises(ValueError, match=f"needs the key '{missing}'"):
        Curriculum.from_dict(given)


def test_a_curriculum_that_is_no_mapping_is_refused():
    with pytest.raises(ValueError, match="must be a mapping"):
        Curriculum.from_dict("atari")
