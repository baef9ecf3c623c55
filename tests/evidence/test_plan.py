"""The plan: which runs, in which order, by which command."""

from pathlib import Path

import pytest

from benchmarks.evidence.plan import PlannedRun, read_plan
from rllib_arrow.errors import UserError


def test_runs_come_group_by_group_and_within_a_group_seed_by_seed(plan):
    assert [run.path for run in plan.runs()] == [
        "games/default/arrow_3",
        "games/default/dv3_3",
        "games/default/arrow_1",
        "games/default/dv3_1",
        "games/single/arrow_a_3",
        "games/single/arrow_b_3",
        "games/single/arrow_a_1",
        "games/single/arrow_b_1",
        "games/default-sac/tes_sac_3",
        "games/default-sac/tes_sac_1",
    ]


def test_a_command_names_example_settings_place_and_seed(plan):
    single = plan.runs(["games/single"])[1]
    assert single.command(["rllib"], Path("/s"), False) == [
        *("rllib", "train", "file", "arrow_minatar"),
        *("--set", 'curriculum.tasks=["b"]', "--set", "seed=3"),
        *("--storage", "/s/games/single", "--name", "arrow_b_3"),
    ]
    sac = plan.runs(["games/default-sac"])[0].command(["rllib"], Path("/s"), True)
    assert "tau=0.01" in sac and sac[-1] == "--resume"


def test_a_runs_name_is_that_of_a_directory():
    run = PlannedRun("g", "DV3 unlimited", "x", 7, "minigrid/lava_gap")
    assert run.name == "dv3_unlimited_minigrid_lava_gap_7"


def test_the_fast_version_has_fewer_seeds_and_its_own_settings(plan_file):
    fast = read_plan(plan_file, fast=True).runs()
    assert [run.path for run in fast] == [
        "games/default/arrow_3",
        "games/default/dv3_3",
        "games/single/arrow_a_3",
        "games/single/arrow_b_3",
        "games/default-sac/tes_sac_3",
    ]
    assert all(("curriculum.epochs_per_task", 1) in run.settings for run in fast)
    few = [("updates_per_epoch", 5) in run.settings for run in fast]
    assert few == [False, False, False, False, True]


def test_the_fast_version_leaves_out_groups_that_try_nothing_of_their_own(plan_file):
    sac = "games/default-sac\n"
    plan_file.write_text(plan_file.read_text().replace(sac, f"{sac}    fast: false\n"))
    assert any("tes_sac" in run.path for run in read_plan(plan_file).runs())
    fast = read_plan(plan_file, fast=True)
    assert not any("tes_sac" in run.path for run in fast.runs())
    assert fast.pages[0].reports == {"report": ("games/default",)}
    assert fast.pages[0].baselines == ("games/single",)
    plan_file.write_text(plan_file.read_text().replace("fast: false", "fast: true"))
    with pytest.raises(UserError, match=r"default-sac: fast .* `false`"):
        read_plan(plan_file)


def test_chosen_runs_come_in_the_order_in_which_they_are_named(plan):
    chosen = plan.runs(["games/single/arrow_b", "games/default/dv3_1", "games/single"])
    assert [run.path for run in chosen] == [
        "games/single/arrow_b_3",
        "games/single/arrow_b_1",
        "games/default/dv3_1",
        "games/single/arrow_a_3",
        "games/single/arrow_a_1",
    ]


def test_what_is_no_group_cannot_be_chosen(plan):
    with pytest.raises(UserError, match=r"--only nothing: no such runs; .*default-sac"):
        plan.runs(["nothing"])


@pytest.mark.parametrize(
    ("before", "after", "message"),
    [
        ("tasks: [a, b]", "task: [a, b]", "group has the key 'task'"),
        ("    seeds: 2\n", "    seeds: 4\n", r"seeds \(4\) must be 1 to 3"),
        ("baselines: [single]", "baselines: [alone]", "no group games/alone"),
        ("games/single", "games/default", "games/default occurs twice"),
        ("methods: {ARROW: arrow_minatar}", "set: {}", "needs the key 'methods'"),
    ],
)
def test_a_plan_with_a_mistake_is_refused_in_one_line(
    plan_file, before, after, message
):
    plan_file.write_text(plan_file.read_text().replace(before, after, 1))
    with pytest.raises(UserError, match=message):
        read_plan(plan_file)
