"""The tables of the results pages, in Markdown, from the runs of a report."""

from __future__ import annotations

import math
from collections.abc import Sequence, Set
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from benchmarks.evidence.plan import Page, Plan
from benchmarks.evidence.records import read_record
from rllib_arrow.metrics.statistics import Paired, Summary, summarise
from rllib_arrow.reports import paper
from rllib_arrow.reports.inside_section import parts_table
from rllib_arrow.runs.load import Runs

LESS, MORE = "less is better", "more is better"
METRICS = {
    "retention": ("Kept at the end of what was learned (retention)", MORE),
    "F": ("Forgetting, F", LESS),
    "FT": ("Forward transfer, FT", MORE),
    "FT_area": ("Forward transfer by area, FT_area", MORE),
    "zero_shot": ("Score on a task before its training (zero_shot)", MORE),
    "ACC": ("Mean score at the end, ACC", MORE),
    "min_ACC": ("Worst moments, min-ACC", MORE),
    "WC_ACC": ("Worst case and the newest task, WC-ACC", MORE),
    "C1_F": ("Forgetting in cycle 1, C1-F", LESS),
    "C2_F": ("Forgetting in cycle 2, C2-F", LESS),
    "C1_FT": ("Forward transfer in cycle 1, C1-FT", MORE),
    "C2_FT": ("Forward transfer in cycle 2, C2-FT", MORE),
    "Max_F": ("Largest drop, Max-F", LESS),
    "Recovery": ("Recovery, a ratio that misleads where cycle 1 was lost", MORE),
}
ONE_CYCLE = ("retention", "F", "FT", "FT_area", "zero_shot", "ACC", "min_ACC", "WC_ACC")
TWO_CYCLES = (
    *("C1_F", "C2_F", "Max_F", "Recovery", "C1_FT", "C2_FT"),
    *("ACC", "min_ACC", "WC_ACC"),
)
PAIRED = ("retention", "F", "FT_area", "ACC", "WC_ACC")
PAIRED_TWO_CYCLES = ("Max_F", "ACC", "min_ACC", "WC_ACC")


def page_tables(
    page: Page, report: str, runs: Runs, notes: Sequence[str]
) -> dict[str, str]:
    """Returns the blocks of a page that are made from one report, by name."""
    blocks = {}
    for name, told in page.tables.items():
        if told.get("report", "report") != report:
            continue
        setting = told.get("setting", "default")
        table = setting_table(runs, setting, told.get("methods"))
        missing = [n for n in notes if n.startswith((f"{setting}, ", f"{name}, "))]
        if table:
            blocks[name] = table + _missing(missing)
        elif missing:
            blocks[name] = _missing(missing).lstrip("\n")
    return blocks


def _missing(notes: Sequence[str]) -> str:
    """Says which runs a table still lacks."""
    return "\nStill missing: " + "; ".join(notes) + ".\n" if notes else ""


# One setting


def setting_table(
    runs: Runs, setting: str, methods: Sequence[str] | None = None
) -> str:
    """Returns raw scores and metrics of the methods side by side; "" without any."""
    scores = runs.scores[runs.scores.setting == setting]
    found = [m for m in methods or _ordered(scores.method) if m in set(scores.method)]
    if not found:
        return ""
    seeds = {m: scores[scores.method == m].seed.nunique() for m in found}
    head = [
        "median over the seeds [quartiles]",
        "random",
        *(f"{m} ({_seeds(seeds[m])})" for m in found),
    ]
    rows = [*_score_rows(runs, scores, setting, found)]
    for metric in TWO_CYCLES if "cycle" in setting else ONE_CYCLE:
        values = [_values(runs, setting, method, metric) for method in found]
        if any(len(v) for v in values):
            text, better = METRICS[metric]
            cells = [_summary(summarise(v)) for v in values]
            rows.append([f"{text} ({better})", "", *cells])
    memory = [_megabytes(scores[scores.method == method]) for method in found]
    if any(memory):
        rows.append(["Replay memory at the end, MB", "", *memory])
    return (
        markdown(head, rows)
        + _differences(runs, setting, found)
        + _borrowed(runs, scores, found)
    )


def _differences(runs: Runs, setting: str, methods: Sequence[str]) -> str:
    """Says how far the first method is from each other one, seed by seed."""
    told = {}
    for comparison in runs.results.comparisons:
        reference = comparison.methods[comparison.reference].raw[0].method
        if comparison.setting == setting and reference == methods[0]:
            told |= comparison.differences
    wanted = PAIRED_TWO_CYCLES if "cycle" in setting else PAIRED
    lines = []
    for method in methods[1:]:
        parts = [
            f"{metric} {_difference(p)}"
            for metric, p in told.get(method, {}).items()
            if metric in wanted
        ]
        if parts:
            lines.append(f"- {methods[0]} minus {method}: {'; '.join(parts)}.\n")
    if not lines:
        return ""
    head = (
        "By seed, mean difference and 95 % interval (of fewer than 5 seeds the range):"
    )
    return f"\n{head}\n\n" + "".join(lines)


def _difference(paired: Paired) -> str:
    """One seed is no sample: it gets no interval."""
    mean = paired.mean
    if paired.seeds == 1:
        return f"{mean.value:+.2f} (one seed)"
    interval = f"[{mean.low:+.2f}, {mean.high:+.2f}]"
    told = f"above zero in {paired.higher} of {paired.seeds}"
    return f"{mean.value:+.2f} {interval}, {told}"


def _score_rows(
    runs: Runs, scores: pd.DataFrame, setting: str, methods: Sequence[str]
) -> list[list[str]]:
    """Raw scores after a task's own training and at the end, task by task."""
    curricula = runs.curricula[runs.curricula.setting == setting]
    first = curricula[curricula.cycle == 1]
    rows = []
    for task in first.task.drop_duplicates():
        name = task.replace("_", " ").capitalize()
        of_task = scores[scores.eval_task == task]
        start = of_task[of_task.epoch == 0].return_mean
        random = f"{start.median():.2f}" if len(start) else ""
        end = int(first[first.task == task].end.iloc[0])
        moments = {"after its own training": end, "at the end": math.inf}
        if "cycle" in setting:
            moments = {"at the end": math.inf}
        for when, epoch in moments.items():
            cells = [
                f"{np.median(_last(of_task[of_task.method == m], epoch)):.2f}"
                for m in methods
            ]
            rows.append([f"{name} {when}", random, *cells])
    return rows


def _last(scores: pd.DataFrame, epoch: float) -> np.ndarray:
    """Each seed's score at the last evaluation up to the epoch."""
    until = scores[scores.epoch <= epoch].sort_values("epoch")
    return until.groupby("seed").return_mean.last().to_numpy()


def _megabytes(scores: pd.DataFrame) -> str:
    """The median over the runs that noted what their memory took; "" without any."""
    every = [read_record(Path(run)).replay_bytes for run in scores.run.unique()]
    noted = [size for size in every if size]
    if not noted:
        return ""
    of = "" if len(noted) == len(every) else f" ({len(noted)} of {len(every)} runs)"
    return f"{np.median(noted) / 1e6:.2f}{of}"


def _values(runs: Runs, setting: str, method: str, metric: str) -> np.ndarray:
    """The metric of each seed that has one."""
    return _by_seed(runs, setting, method, metric).to_numpy()


def _by_seed(runs: Runs, setting: str, method: str, metric: str) -> pd.Series:
    """The metric of each seed that has one, by seed."""
    m = runs.metrics
    chosen = (m.setting == setting) & (m.method == method) & (m.metric == metric)
    # A method may stand in several comparisons, such as that of the paper's ratios.
    return m[chosen].drop_duplicates("seed").set_index("seed").value.dropna()


def _borrowed(runs: Runs, scores: pd.DataFrame, methods: Sequence[str]) -> str:
    """Says whose forward transfer is measured against another method's runs."""
    [suite] = scores.suite.unique()
    normaliser, told = runs.results.normalisers[suite], {}
    for method in methods:
        singles = normaliser.single_tasks(method, runs.baselines).values()
        others = [single.method for single in singles if single.method != method]
        if others:
            on = f" on {len(others)} of {len(singles)} tasks"
            part = "" if len(others) == len(singles) else on
            told.setdefault(f"{others[0]}'s{part}", []).append(method)
    lines = [f"of {', '.join(names)} with {whose}" for whose, names in told.items()]
    if not lines:
        return ""
    return f"\nForward transfer compares with single-task runs: {'; '.join(lines)}.\n"


def _ordered(methods: pd.Series) -> list[str]:
    """Methods as in the paper, then others by name."""
    known = [m for m in paper.BASELINES if m in set(methods)]
    return known + sorted(set(methods) - set(known))


# Beside the paper


def paper_table(page: Page, report: str, runs: Runs) -> dict[str, str]:
    """Returns the paper's medians beside ours, in a block per setting."""
    if not page.paper or report != "report":
        return {}
    blocks = {}
    for (suite, setting), theirs in paper.METRICS.items():
        if suite != page.paper:
            continue
        methods = [m for m in paper.BASELINES if len(_values(runs, setting, m, "ACC"))]
        head = ["median"]
        for method in methods:
            head += [f"{method}, here", f"{method}, paper"]
        rows = []
        for metric in TWO_CYCLES if "cycle" in setting else ONE_CYCLE:
            if metric not in theirs["ARROW"] or not methods:
                continue
            cells = []
            for method in methods:
                ours = summarise(_values(runs, setting, method, metric))
                here = f"{ours.median:.2f}" if ours.seeds else ""
                cells += [here, f"{theirs[method][metric].median:.2f}"]
            rows.append([METRICS[metric][0], *cells])
        if rows:
            blocks[f"paper {setting}"] = markdown(head, rows)
    return blocks


# Inside


def inside_tables(page: Page, runs: Runs) -> dict[str, str]:
    """Returns what the parts of each method forgot, in a block per setting."""
    blocks = {}
    for setting in dict.fromkeys(runs.inside.setting):
        of_setting = runs.inside[runs.inside.setting == setting]
        table = parts_table(of_setting, setting, _ordered(of_setting.method))
        if table.rows:
            blocks[f"{page.name} {setting}"] = table.markdown()
    return blocks


# The headline


def headline_table(plan: Plan, reports: dict[str, Runs]) -> str:
    """Returns the few lines that the README shows, each with its number of seeds."""
    head = ["what", *paper.BASELINES, "QUIVER"]
    rows = []
    for line in plan.headline:
        names = (f"{line['page']}/{report}" for report in ("report", "quiver"))
        found = [reports[name] for name in names if name in reports]
        if any(cells := _headline_cells(found, line, head[1:])):
            rows.append([f"[{line['text']}]({line['page']}/README.md)", *cells])
    return markdown(head, rows)


def _headline_cells(
    found: Sequence[Runs], line: dict[str, Any], methods: Sequence[str]
) -> list[str]:
    """Each method's numbers over the seeds that all of them have."""
    of = {}
    for method in methods:
        every = (_by_seed(r, line["setting"], method, line["metric"]) for r in found)
        of[method] = next((values for values in every if len(values)), pd.Series())
    if not len(of[methods[0]]):
        return []
    seeds = set.intersection(*(set(v.index) for v in of.values() if len(v)))
    return [_headline_cell(of[method], seeds) for method in methods]


def _headline_cell(values: pd.Series, seeds: Set[int]) -> str:
    shared = [value for seed, value in values.items() if seed in seeds]
    return f"{_summary(summarise(shared))}, {_seeds(len(shared))}" if shared else ""


def _summary(summary: Summary) -> str:
    if not summary.seeds:
        return ""
    if summary.seeds == 1:
        return f"{summary.median:.2f}"
    return f"{summary.median:.2f} [{summary.q25:.2f} - {summary.q75:.2f}]"


def _seeds(count: int) -> str:
    return "1 seed" if count == 1 else f"{count} seeds"


def markdown(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Returns a Markdown table."""
    lines = [head, ["---"] * len(head), *rows]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
