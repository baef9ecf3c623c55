"""From runs to results: which runs are compared, and every number of the report."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

import numpy as np

from rllib_arrow.envs.suites import SUITES
from rllib_arrow.metrics.continual import continual_metrics
from rllib_arrow.metrics.curve import RunCurve
from rllib_arrow.metrics.statistics import SampleEfficiency, sample_efficiency
from rllib_arrow.metrics.value import Value, undefined
from rllib_arrow.runs.evidence import add_statistics
from rllib_arrow.runs.normalise import Normaliser, build_normaliser
from rllib_arrow.runs.pooled import pooled_settings
from rllib_arrow.runs.read import Run, same_curriculum, split_method
from rllib_arrow.runs.results import (
    RATIO,
    RATIOS,
    Comparison,
    MethodResult,
    Results,
    SingleTaskResult,
)

_METHOD_ORDER = ("ARROW", "DV3", "TES-SAC", "QUIVER", *RATIOS, "AR100")
_SETTING_ORDER = ("default", "reversed", "two_cycle")


def analyse(
    runs: Sequence[Run], baselines: Sequence[Run] = (), notes: Sequence[str] = ()
) -> Results:
    """Returns every number of the report on the given runs."""
    everything = [*runs, *baselines]
    normalisers = {
        suite: build_normaliser(suite, runs, baselines)
        for suite in dict.fromkeys(run.curve.suite for run in everything)
    }
    comparisons = [
        _compare(suite, setting, sweep, groups, normalisers[suite], baselines)
        for (suite, setting, sweep), groups in _comparisons(runs).items()
    ]
    return Results(
        list(runs),
        list(baselines),
        normalisers,
        [c for c in comparisons if c.normalised],
        [c for c in comparisons if not c.normalised],
        _single_task_results(everything),
        [*notes, *_notes(runs, baselines)],
    )


def _notes(runs: Sequence[Run], baselines: Sequence[Run]) -> list[str]:
    notes = []
    if not baselines and any(run.curve.setting == "single" for run in runs):
        notes.append(
            "Single-task runs are among the runs; name them with --baselines to "
            "normalise by them."
        )
    everything = [*runs, *baselines]
    inferred = [run.label for run in everything if run.plan is None]
    if inferred:
        notes.append(
            f"{len(inferred)} of {len(everything)} runs (the first is {inferred[0]}) "
            "have no curriculum.json beside them: their exposures are read from "
            "trained_task, and their last evaluation is taken as their end."
        )
    return notes


def method_rank(method: str) -> tuple:
    """Sorts the paper's methods first, in the paper's order, and sweeps by value."""
    name, values = split_method(method)
    known = name in _METHOD_ORDER
    rank = _METHOD_ORDER.index(name) if known else len(_METHOD_ORDER)
    return rank, name, _by_number(values)


def _by_number(text: str) -> list[tuple[float, str]]:
    """Sorts `size=64` before `size=128`."""
    parts = re.split(r"(\d+(?:\.\d+)?(?:e[-+]?\d+)?)", text)
    return [(float(p), "") if i % 2 else (0.0, p) for i, p in enumerate(parts)]


def _comparisons(
    runs: Iterable[Run],
) -> dict[tuple[str, str, str], dict[str, list[Run]]]:
    """Runs by what is compared: methods with one another, sweeps apart.

    A setting of which one value was run is a control and stands beside the methods.
    In the ablation, ARROW's default split stands in for AR50 where that is not given.
    """
    groups: dict[tuple[str, str, str], dict[str, list[Run]]] = {}
    for run in runs:
        c = run.curve
        if c.setting != "single":
            key = (c.suite, c.setting, _swept(run))
            groups.setdefault(key, {}).setdefault(c.method, []).append(run)
    for key in [key for key in groups if _is_control(key, groups)]:
        groups[key[0], key[1], ""] |= groups.pop(key)
    for (suite, setting, sweep), methods in groups.items():
        arrow = groups.get((suite, setting, ""), {}).get("ARROW")
        if sweep == RATIO and "AR50" not in methods and arrow:
            methods["AR50"] = arrow
    return {
        key: dict(sorted(groups[key].items(), key=lambda item: method_rank(item[0])))
        for key in sorted(groups, key=_comparison_rank)
    }


def _is_control(
    key: tuple[str, str, str], groups: dict[tuple[str, str, str], dict[str, list[Run]]]
) -> bool:
    suite, setting, sweep = key
    runs = [run for group in groups[key].values() for run in group]
    plain = groups.get((suite, setting, ""))
    return (
        sweep not in ("", RATIO)
        and plain is not None
        and len({run.sweep for run in runs}) == 1
        and all(same_curriculum(run, next(iter(plain.values()))[0]) for run in runs)
    )


def _swept(run: Run) -> str:
    """What is varied in the comparison the run belongs to: names of settings."""
    if run.curve.method in RATIOS:
        return RATIO
    return " ".join(value.partition("=")[0] for value in run.sweep.split())


def _comparison_rank(key: tuple[str, str, str]) -> tuple:
    suite, setting, sweep = key
    known = setting in _SETTING_ORDER
    rank = _SETTING_ORDER.index(setting) if known else len(_SETTING_ORDER)
    return (suite, sweep, rank, setting)


def _compare(
    suite: str,
    setting: str,
    sweep: str,
    groups: dict[str, list[Run]],
    normaliser: Normaliser,
    singles: Sequence[Run],
) -> Comparison:
    notes: list[str] = []
    results = {
        method: _method_result(method, runs, normaliser, singles, notes)
        for method, runs in groups.items()
    }
    normalised = {m: r.curves for m, r in results.items() if r.curves}
    efficiency = sample_efficiency(normalised)
    for method in normalised:
        _add_efficiency(method, results[method], efficiency)
        notes += _metric_notes(results[method])
    finished = all(run.finished for runs in groups.values() for run in runs)
    comparison = Comparison(suite, setting, sweep, results, efficiency, finished, notes)
    complete = all(any(run.finished for run in groups[method]) for method in results)
    if normalised and complete:
        add_statistics(comparison)
    elif normalised:
        notes.append(
            "Interquartile means and probabilities of improvement compare scores at "
            "the end of training; they wait for every method to have a finished run."
        )
    return comparison


def _method_result(
    method: str,
    runs: list[Run],
    normaliser: Normaliser,
    singles: Sequence[Run],
    notes: list[str],
) -> MethodResult:
    """The numbers of one method; unfinished runs do not mix with finished ones."""
    finished = [run for run in runs if run.finished]
    waiting = [run for run in runs if not run.finished] if finished else []
    used = finished or runs
    for run in runs:
        if not run.finished:
            notes.append(f"{run.label}: {_progress(run, run in waiting)}")
    for name, different in pooled_settings(used).items():
        notes.append(
            f"{method}: its runs differ in {name} ({', '.join(different)}), and their "
            "seeds are pooled; label_settings tells such runs apart."
        )
    single = normaliser.single_tasks(runs[0].curve.method, singles)
    pairs = [(run.curve, normaliser.curve(run.curve)) for run in used]
    # A sweep over tasks may have runs of which no task has a scale.
    pairs = [pair for pair in pairs if pair[1] is not None] or pairs
    raw, curves = zip(*pairs, strict=True)
    curves = [curve for curve in curves if curve is not None]
    per_run = [continual_metrics(curve, single) for curve in curves]
    values = {
        name: [metrics.get(name, undefined("not reached")) for metrics in per_run]
        for name in dict.fromkeys(name for metrics in per_run for name in metrics)
    }
    if len(raw) == 1:
        notes.append(f"{method}: one seed, so its quartiles are the value itself.")
    return MethodResult(method, list(raw), curves, values, waiting)


def _progress(run: Run, waits: bool) -> str:
    curve = run.curve
    end = f" of {curve.end}" if run.plan else ""
    met = len(curve.first_exposures())
    state = (
        f"unfinished (epoch {curve.now}{end}, {met} of {len(curve.tasks)} tasks met)"
    )
    if waits:
        return f"{state}; not counted until it has finished."
    return f"{state}; its numbers are as of now, over the tasks met."


def _add_efficiency(
    method: str, result: MethodResult, efficiency: SampleEfficiency
) -> None:
    """Adds SE_frames and each run's own peak to a method's values."""
    why = f"never reached the threshold of {efficiency.threshold:.3f}"
    if np.isnan(efficiency.threshold):
        why = "no method rose above random, so there is no threshold"
    result.values["SE_frames"] = [
        Value(frames) if np.isfinite(frames) else undefined(why)
        for frames in efficiency.frames[method]
    ]
    result.values["max_performance"] = [
        Value(float(curve.scores.mean(axis=1).max())) for curve in result.curves
    ]


def _metric_notes(result: MethodResult) -> list[str]:
    """What readers must know about single numbers, seeds with the same note joined."""
    seeds: dict[tuple[str, str], list[int]] = {}
    for metric, values in result.values.items():
        for seed, value in zip(result.seeds, values, strict=True):
            for note in value.notes:
                seeds.setdefault((metric, note), []).append(seed)
    metrics: dict[tuple[str, tuple[int, ...]], list[str]] = {}
    for (metric, note), which in seeds.items():
        metrics.setdefault((note, tuple(which)), []).append(metric)
    notes = []
    for (note, which), names in metrics.items():
        every = len(which) == len(result.seeds)
        whom = "" if every else f" (seed {', '.join(map(str, which))})"
        notes.append(f"{result.method}, {', '.join(names)}{whom}: {note}.")
    return notes


def _single_task_results(runs: Iterable[Run]) -> list[SingleTaskResult]:
    groups: dict[tuple[str, str], dict[str, list[RunCurve]]] = {}
    for run in runs:
        if run.curve.setting == "single":
            key = (run.curve.suite, run.curve.tasks[0])
            methods = groups.setdefault(key, {})
            methods.setdefault(run.curve.method, []).append(run.curve)
    results = []
    for suite, task in sorted(groups, key=_task_rank):
        curves = groups[suite, task]
        curves = dict(sorted(curves.items(), key=lambda item: method_rank(item[0])))
        results.append(SingleTaskResult(suite, task, curves, sample_efficiency(curves)))
    return results


def _task_rank(key: tuple[str, str]) -> tuple[str, int, str]:
    """Sorts tasks in their suite's default order."""
    suite, task = key
    order = SUITES[suite].tasks if suite in SUITES else ()
    return (suite, order.index(task) if task in order else len(order), task)
