"""Fills the report's page, `page.html`: one file with both themes, phone and print."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from rllib_arrow.reports.building_blocks import Section, comparison_title, suite_title
from rllib_arrow.reports.sections import normalisation_notes, runs_table
from rllib_arrow.reports.style import DPI, WIDTH
from rllib_arrow.reports.tables import format_summary
from rllib_arrow.runs.analysis import method_rank
from rllib_arrow.runs.results import Comparison, Results

# What a reader needs to know about each metric, in a sentence.
GLOSSARY = {
    "Normalised score": "0 is a random policy, 1 is single-task training.",
    "Forgetting (F)": "Score right after a task's training minus the score at the end, "
    "averaged over tasks. Below 0, later tasks helped earlier ones.",
    "Forward transfer (FT)": "Mean score while a task is trained against that of "
    "single-task training, as a fraction of the latter.",
    "ACC": "Mean score over all tasks at the end.",
    "min-ACC": "Mean over earlier tasks of the lowest score each fell to after its "
    "training.",
    "WC-ACC": "The last task's score and min-ACC, weighted 1/T and 1 - 1/T.",
    "SE": "Frames until a run's mean score over all tasks reaches 85 % of the highest "
    "median of any method.",
    "Max-F": "Score after the first exposure minus the score just before the second.",
    "Recovery": "Score after the second exposure divided by the score after the first.",
    "C1, C2": "The same metric within one cycle.",
    "Retention": "Score at the end divided by the score right after a task's training, "
    "averaged over tasks but the last. 1 is nothing lost, 0 is back to random.",
    "FT-area": "Forward transfer as Continual World defines it: the area between a "
    "task's curve and that of single-task training, as a share of the room above it.",
    "Zero-shot": "Score on a task at the last evaluation before its own training, "
    "averaged over tasks but the first.",
    "Paired difference": "Difference of two methods' values on the same seed, averaged "
    "over seeds.",
    "Performance profile": "Share of tasks and seeds whose score at the end is at "
    "least so high.",
    "Interquartile mean": "Mean of the middle half of all final scores, over tasks and "
    "seeds; less jumpy than the median, less swayed by outliers than the mean.",
    "Forgotten, of a part": "How far a part of the networks has moved from what it was "
    "at the end of a task's training, as a share of how far an untrained one is.",
    "Probability of improvement": "Chance that one method's run beats the other's on a "
    "task drawn at random; one half means neither is better.",
}


def render_page(
    results: Results,
    sections: Sequence[Section],
    images: Mapping[str, bytes],
) -> str:
    """Returns the page; `images` has each picture's PNG by name."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return environment.get_template("page.html").render(
        title=_title(results),
        lead=_lead(results),
        cards=[_card(c) for c in results.comparisons],
        normalisation=normalisation_notes(results),
        notes=results.notes,
        sections=sections,
        images={name: _image(png) for name, png in images.items()},
        runs=runs_table(results),
        glossary=GLOSSARY,
    )


def _title(results: Results) -> str:
    suites = dict.fromkeys(run.curve.suite for run in results.runs)
    return f"Continual learning on {', '.join(map(suite_title, suites))}"


def _lead(results: Results) -> str:
    methods = sorted({run.curve.method for run in results.runs}, key=method_rank)
    unfinished = sum(not run.finished for run in results.runs)
    state = f", {unfinished} of them unfinished" if unfinished else ""
    lead = f"{_count(len(results.runs), 'run')} of {', '.join(methods)}{state}"
    if results.baselines:
        lead += f"; {_count(len(results.baselines), 'single-task baseline run')}"
    return f"{lead}."


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _card(comparison: Comparison) -> dict[str, Any]:
    """The numbers most people look for first."""
    metrics = ("F" if comparison.cycles == 1 else "Max_F", "retention", "WC_ACC")
    lines = []
    for method, result in comparison.methods.items():
        summaries = [format_summary(result.summary(m), 2) for m in metrics]
        lines.append((method, " / ".join(s.split(" ")[0] for s in summaries)))
    state = "" if comparison.finished else " (unfinished)"
    return {
        "title": comparison_title(comparison) + state,
        "names": " / ".join(m.replace("_", "-") for m in metrics),
        "lines": lines,
    }


def _image(png: bytes) -> dict[str, str]:
    """A picture as text, and how much of the page's width it takes."""
    # Narrow figures stay narrow, so that all have letters of the same size.
    pixels = int.from_bytes(png[16:20], "big")
    share = min(pixels / (WIDTH * DPI), 1)
    return {"base64": base64.b64encode(png).decode(), "share": f"{share:.3f}"}
