"""From files to numbers: normalisation, who is compared with whom, what is told."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rllib_arrow.envs.suites import reference_scores
from rllib_arrow.errors import UserError
from rllib_arrow.metrics.continual import continual_metrics
from rllib_arrow.reports.figures import curves_figure
from rllib_arrow.runs.load import load_runs
from rllib_arrow.runs.normalise import build_normaliser
from rllib_arrow.runs.read import read_runs
from tests.runs.made import SCORES, write_run, write_singles


def analyse(runs, baselines=()):
    return load_runs(*runs, baselines=baselines).results


def values(results, method="ARROW", which=0):
    found = results.comparisons[which].methods[method].values
    return {name: value[0].value for name, value in found.items()}


def test_scores_are_normalised_by_medians_over_the_single_task_arrow_runs(tmp_path):
    run = write_run(tmp_path / "run", SCORES, [1, 1])
    single = tmp_path / "single"
    write_singles(single, seed=1)
    write_singles(single, a=(12, 32), b=(0, 4), seed=2)
    write_singles(single, a=(8, 100), b=(0, 4), seed=3)
    write_singles(single, method="DV3", a=(500, 900), b=(7, 8))
    results = analyse([run], [single])
    scale = results.normalisers["toy"].scales["A"]
    assert (scale.low, scale.high) == (10, 32)  # medians of 10, 12, 8; 30, 32, 100


def test_unfinished_single_task_runs_count_only_while_none_has_finished(tmp_path):
    run = write_run(tmp_path / "run", SCORES, [1, 1])
    single = write_singles(tmp_path / "single", a=(10, 30), seed=1)
    write_run(single / "two", {"A": [10, 12]}, [9], setting="single", seed=2)
    scale = analyse([run], [single]).normalisers["toy"].scales["A"]
    assert scale.high == 30 and "finished" not in scale.source
    only = analyse([run], [single / "two"]).normalisers["toy"].scales["A"]
    assert only.high == 12 and "none has finished yet" in only.source


def test_metrics_from_files_match_the_numbers_worked_by_hand(tmp_path):
    run = write_run(tmp_path / "run", SCORES, [1, 1])
    results = analyse([run], [write_singles(tmp_path / "single")])
    # Normalised: A 0, 1, 0.5; B 0, 0.25, 0.75. Singles average 1 over their epoch.
    assert values(results) == pytest.approx(
        {
            "F": ((1 - 0.5) + 0) / 2,
            "FT": ((1 - 1) / 1 + (0.75 - 1) / 1) / 2,
            "ACC": (0.5 + 0.75) / 2,
            "min_ACC": 0.5,
            "WC_ACC": 0.75 / 2 + 0.5 / 2,
            "retention": 0.5 / 1,
            "FT_area": np.nan,  # single-task curves at 1 leave no room above them
            "zero_shot": 0.25,
            # Mean series 0, 0.625, 0.625: 85 % of its peak is reached at once.
            "SE_frames": 100,
            "max_performance": 0.625,
        },
        nan_ok=True,
    )


def test_forward_transfer_uses_the_methods_own_single_task_runs(tmp_path):
    runs = [
        write_run(tmp_path / method, SCORES, [1, 1], method=method)
        for method in ("ARROW", "DV3", "TES-SAC")
    ]
    single = write_singles(tmp_path / "single")
    write_singles(single, method="DV3", a=(10, 20), b=(0, 1))  # 0.5 and 0.25
    results = analyse(runs, [single])
    assert values(results, "DV3")["FT"] == pytest.approx(
        (1 / 0.5 + 0.75 / 0.25) / 2 - 1
    )
    arrow, tes = values(results)["FT"], values(results, "TES-SAC")["FT"]
    assert tes == pytest.approx(arrow)
    notes = results.comparisons[0].notes
    assert "TES-SAC, FT, FT_area: compared with ARROW's single-task runs." in notes


def test_without_baselines_the_shipped_reference_scores_are_used_and_told(tmp_path):
    reference = reference_scores("coinrun")
    tasks = list(reference)[:2]
    scores = {task: [reference[task].random, reference[task].arrow] for task in tasks}
    run = write_run(tmp_path / "run", scores, [1, 1], suite="coinrun")
    results = analyse([run])
    curve = results.comparisons[0].methods["ARROW"].curves[0]
    assert curve.scores == pytest.approx(np.array([[0, 0], [1, 1]]))
    notes = " ".join(results.normalisers["coinrun"].notes)
    assert "the suite's shipped reference scores" in notes
    assert "No single-task runs were given (--baselines)" in notes


def test_runs_that_differ_in_low_and_high_are_not_compared(tmp_path):
    for seed in (1, 2):
        run = write_run(tmp_path / f"{seed}", SCORES, [1, 1], seed=seed)
        plan = json.loads((run / "curriculum.json").read_text())
        plan["references"] = {"A": {"low": 0, "high": seed}}
        (run / "curriculum.json").write_text(json.dumps(plan))
    with pytest.raises(UserError, match="differ in low and high of 'A'"):
        analyse([tmp_path])


def test_without_any_reference_the_best_median_of_the_runs_is_one_and_told(tmp_path):
    for seed, top in ((1, 4), (2, 6), (3, 50)):
        scores = {"A": [0, top, 1], "B": [1, 1, 3]}
        write_run(tmp_path / f"{seed}", scores, [1, 1], seed=seed)
    write_run(tmp_path / "dv3", {"A": [0, 5, 0], "B": [1, 1, 2]}, [1, 1], method="DV3")
    results = analyse([tmp_path])
    scales = results.normalisers["toy"].scales
    assert (scales["A"].low, scales["A"].high) == (0, 6)
    assert (scales["B"].low, scales["B"].high) == (1, 3)
    assert "the best median score of any method" in results.normalisers["toy"].notes[0]


def test_a_task_never_above_random_is_left_out_and_told(tmp_path):
    scores = {"A": [10, 30, 20], "B": [2, 2, 2]}
    results = analyse([write_run(tmp_path / "run", scores, [1, 1])])
    assert results.comparisons[0].first_curve.tasks == ("A",)
    assert any("B is left out" in note for note in results.normalisers["toy"].notes)
    assert "B" not in results.normalisers["toy"].scales


def test_a_baseline_that_learned_nothing_is_not_the_measure(tmp_path):
    run = write_run(tmp_path / "run", SCORES, [1, 1])
    single = write_singles(tmp_path / "single", b=(4, 4))
    scale = analyse([run], [single]).normalisers["toy"].scales["B"]
    assert (scale.low, scale.high) == (2, 4)  # epoch 0 of both; best of both
    assert "best median" in scale.source


def test_if_nothing_was_learned_at_all_there_is_no_comparison_but_no_crash(tmp_path):
    scores = {"A": [1, 1, 1], "B": [2, 2, 2]}
    results = analyse([write_run(tmp_path / "run", scores, [1, 1])])
    assert results.comparisons == []
    assert len(results.normalisers["toy"].notes) >= 2


def test_an_unfinished_run_waits_while_other_seeds_have_finished(tmp_path):
    write_run(tmp_path / "done", SCORES, [1, 1])
    write_run(tmp_path / "going", {"A": [9, 9], "B": [9, 9]}, [1, 1], seed=2)
    comparison = analyse([tmp_path]).comparisons[0]
    assert comparison.methods["ARROW"].seeds == [1]
    assert [run.curve.seed for run in comparison.methods["ARROW"].waiting] == [2]
    assert any(
        "seed 2: unfinished (epoch 1 of 2, 1 of 2 tasks met); not counted" in note
        for note in comparison.notes
    )


def test_a_lone_unfinished_run_is_shown_as_of_now(tmp_path):
    run = write_run(tmp_path / "run", {"A": [10, 30], "B": [0, 1]}, [2, 1])
    results = analyse([run], [write_singles(tmp_path / "single")])
    found = values(results)
    assert (found["ACC"], found["F"], found["WC_ACC"]) == (1, 0, 1)
    assert np.isnan(found["min_ACC"]) and np.isnan(found["FT"])
    assert "as of now" in " ".join(results.comparisons[0].notes)
    assert results.comparisons[0].iqm == {}


def test_ratio_variants_are_compared_apart_and_arrow_stands_in_for_ar50(tmp_path):
    for method in ("ARROW", "DV3", "AR25", "AR75"):
        write_run(tmp_path / method, SCORES, [1, 1], method=method)
    methods = [list(c.methods) for c in analyse([tmp_path]).comparisons]
    assert methods == [["ARROW", "DV3"], ["AR25", "AR50", "AR75"]]
    write_run(
        tmp_path / "AR50", {"A": [0, 5, 5], "B": [0, 1, 9]}, [1, 1], method="AR50"
    )
    ratio = analyse([tmp_path]).comparisons[1]
    assert ratio.methods["AR50"].curves[0].method == "AR50"


def test_sweeps_are_compared_apart_in_order_of_their_values(tmp_path):
    write_run(tmp_path / "plain", SCORES, [1, 1])
    for size in (64, 128, 256):
        name = f"ARROW replay_capacity_chunks={size}"
        write_run(tmp_path / name, SCORES, [1, 1], method=name)
    write_run(tmp_path / "short", SCORES, [1, 1], method="ARROW epochs_per_task=1")
    longer = {"A": [0, 4, 3, 2, 1], "B": [0, 1, 2, 3, 4]}
    write_run(tmp_path / "long", longer, [2, 2], method="ARROW epochs_per_task=2")
    plain, epochs, sizes = analyse([tmp_path]).comparisons
    assert list(plain.methods) == ["ARROW"]
    assert [m.split("=")[1] for m in epochs.methods] == ["1", "2"]
    assert [m.split("=")[1] for m in sizes.methods] == ["64", "128", "256"]
    assert sizes.name == "toy_default_replay_capacity_chunks"
    titles = [ax.get_title(loc="left") for ax in curves_figure(sizes).axes]
    assert titles[:2] == ["ARROW 64 (1 seed)", "ARROW 128 (1 seed)"]
    assert epochs.methods["ARROW epochs_per_task=2"].summary("F").median > 0


def test_a_name_of_several_words_is_no_sweep(tmp_path):
    write_run(tmp_path / "a", SCORES, [1, 1], method="My Method")
    write_run(tmp_path / "b", SCORES, [1, 1], method="ARROW")
    (both,) = analyse([tmp_path]).comparisons
    assert list(both.methods) == ["ARROW", "My Method"]


def test_the_threshold_is_that_of_the_methods_compared(tmp_path):
    write_run(tmp_path / "a", {"A": [0, 4], "B": [0, 4]}, [1, 1], method="ARROW")
    write_run(tmp_path / "b", {"A": [0, 8], "B": [0, 8]}, [1, 1], method="AR75")
    single = write_singles(tmp_path / "single", a=(0, 4), b=(0, 4))
    plain, ratio = analyse([tmp_path / "a", tmp_path / "b"], [single]).comparisons
    assert plain.efficiency.threshold == pytest.approx(0.85)
    assert ratio.efficiency.threshold == pytest.approx(2 * 0.85)


def test_runs_of_one_method_with_other_settings_are_told_of(tmp_path):
    same = {"entropy_scale": 0.001, "num_env_runners": 1, "f": "<f at 0x7f01>"}
    placed = same | {"num_env_runners": 0, "f": "<f at 0x7f02>"}
    for seed, params in {1: same, 2: placed, 3: None}.items():
        run = write_run(tmp_path / str(seed), SCORES, [1, 1], seed=seed)
        if params:
            (run / "params.json").write_text(json.dumps(params | {"seed": seed}))
    single = write_singles(tmp_path / "single")
    [plain] = analyse(
        [tmp_path / str(seed) for seed in (1, 2, 3)], [single]
    ).comparisons
    assert "differ in" not in " ".join(plain.notes)
    other = write_run(tmp_path / "4", SCORES, [1, 1], seed=4)
    told = same | {"entropy_scale": 0.003, "gamma": 0.9, "num_env_runners": 4}
    (other / "params.json").write_text(json.dumps(told))
    [mixed] = analyse([tmp_path / str(n) for n in (1, 2, 3, 4)], [single]).comparisons
    notes = " ".join(mixed.notes)
    assert "ARROW: its runs differ in entropy_scale (0.001, 0.003), and" in notes
    assert "differ in gamma (left alone, 0.9)" in notes
    assert "differ in num_env_runners (1, 4)" in notes and "differ in f " not in notes


def test_baselines_must_hold_single_task_runs(tmp_path):
    run = write_run(tmp_path / "run", SCORES, [1, 1])
    with pytest.raises(UserError, match="none of the 1 runs has the setting 'single'"):
        analyse([run], [run])


def test_one_tree_may_be_given_as_runs_and_as_baselines(tmp_path):
    write_run(tmp_path / "run", SCORES, [1, 1])
    write_singles(tmp_path)
    results = analyse([tmp_path], [tmp_path])
    assert len(results.runs) == 1 and len(results.baselines) == 2
    assert values(results)["ACC"] == pytest.approx(0.625)


@pytest.fixture(scope="module")
def study(tmp_path_factory):
    """Three seeds of two methods with baselines, as loaded runs."""
    root = tmp_path_factory.mktemp("study")
    rng = np.random.default_rng(0)
    for method in ("ARROW", "DV3"):
        for seed in (1, 2, 3):
            scores = {t: rng.normal(0, 2, 7).round(3).tolist() for t in "ABC"}
            where = root / "run" / f"{method}{seed}"
            write_run(where, scores, [2, 2, 2], method=method, seed=seed)
            for task in "ABC":
                start = rng.normal(0, 0.1)
                about = {"method": method, "seed": seed, "setting": "single"}
                write_run(
                    root / "single" / f"{method}{seed}{task}",
                    {task: [start, start + 1, start + rng.uniform(2, 3)]},
                    [2],
                    **about,
                )
    return read_runs([root / "run"]), read_runs([root / "single"])


@settings(deadline=None, max_examples=25)
@given(
    st.lists(
        st.tuples(st.floats(0.01, 100), st.floats(-50, 50)), min_size=3, max_size=3
    )
)
def test_scaling_and_shifting_returns_changes_no_normalised_metric(study, changes):
    def changed(run):
        curve = run.curve
        factors, shifts = zip(
            *(changes["ABC".index(task)] for task in curve.tasks), strict=True
        )
        scores = curve.scores * np.array(factors) + np.array(shifts)
        return replace(run, curve=replace(curve, scores=scores))

    def metrics(runs, baselines):
        normaliser = build_normaliser("toy", runs, baselines)
        return [
            value.value
            for run in runs
            for value in continual_metrics(
                normaliser.curve(run.curve),
                normaliser.single_tasks(run.curve.method, baselines),
            ).values()
        ]

    runs, baselines = study
    before = metrics(runs, baselines)
    after = metrics([changed(r) for r in runs], [changed(r) for r in baselines])
    assert after == pytest.approx(before, rel=1e-6, abs=1e-6, nan_ok=True)


def test_looks_of_one_game_share_the_scale_of_its_base(tmp_path):
    looks = {"base": [3, 9, 9], "palette": [3, 3, 12]}
    about = {"suite": "minatar_variants", "seed": 1}
    write_run(tmp_path / "run", looks, [1, 1], **about)
    for task, learned in (("base", 9), ("palette", 3.01)):
        single = tmp_path / "single" / task
        write_run(single, {task: [3, learned]}, [1], setting="single", **about)
    runs = load_runs(tmp_path / "run", baselines=tmp_path / "single")
    told = build_normaliser("minatar_variants", runs.runs, runs.baselines).notes
    assert "ARROW runs given on Space Invaders, both medians" in told[0]
    value = runs.metrics.set_index("metric").value
    assert value["ACC"] == pytest.approx((1 + 1.5) / 2)  # 9 and 12 on a scale of 3 to 9
