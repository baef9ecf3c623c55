"""One self-contained HTML page: no script, no request, both themes, phone and print."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from html import escape

from rllib_arrow.reports.page_style import CSS
from rllib_arrow.reports.sections import (
    Picture,
    Section,
    comparison_title,
    runs_table,
    suite_title,
)
from rllib_arrow.reports.style import DPI, WIDTH
from rllib_arrow.reports.tables import Table, format_summary
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
    "Interquartile mean": "Mean of the middle half of all final scores, over tasks and "
    "seeds; less jumpy than the median, less swayed by outliers than the mean.",
    "Probability of improvement": "Chance that one method's run beats the other's on a "
    "task drawn at random; one half means neither is better.",
}


def render_page(
    results: Results,
    sections: Sequence[Section],
    images: Mapping[str, bytes],
) -> str:
    """Returns the page; `images` has each picture's PNG by name."""
    body = [_header(results), _navigation(sections), _cards(results.comparisons)]
    body.append(_notes("How the numbers were normalised", _normalisation(results)))
    if results.notes:
        body.append(_notes("Read with care", results.notes))
    body += [_section(section, images) for section in sections]
    body.append(_runs(results))
    body.append(_glossary())
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "img-src data:; style-src 'unsafe-inline'\">\n"
        '<link rel="icon" href="data:,">\n'
        f"<title>{escape(_title(results))}</title>\n<style>{CSS}</style>\n"
        f"</head>\n<body>\n{''.join(body)}</body>\n</html>\n"
    )


def _title(results: Results) -> str:
    suites = dict.fromkeys(run.curve.suite for run in results.runs)
    return f"Continual learning on {', '.join(map(suite_title, suites))}"


def _header(results: Results) -> str:
    methods = sorted({run.curve.method for run in results.runs}, key=method_rank)
    unfinished = sum(not run.finished for run in results.runs)
    state = f", {unfinished} of them unfinished" if unfinished else ""
    lead = f"{_count(len(results.runs), 'run')} of {', '.join(methods)}{state}"
    if results.baselines:
        lead += f"; {_count(len(results.baselines), 'single-task baseline run')}"
    return (
        f"<header><h1>{escape(_title(results))}</h1>"
        f'<p class="lead">{escape(lead)}.</p></header>\n'
    )


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _navigation(sections: Sequence[Section]) -> str:
    links = [(s.anchor, s.title) for s in sections]
    links += [("runs", "Runs"), ("glossary", "Metrics")]
    items = "".join(
        f'<li><a href="#{escape(a, quote=True)}">{escape(t)}</a></li>' for a, t in links
    )
    return f"<nav><ul>{items}</ul></nav>\n"


def _cards(comparisons: Sequence[Comparison]) -> str:
    """The two numbers most people look for first, per comparison."""
    cards = []
    for comparison in comparisons:
        lines = []
        metrics = ("F" if comparison.cycles == 1 else "Max_F", "WC_ACC")
        for method, result in comparison.methods.items():
            values = " / ".join(
                format_summary(result.summary(m)).split(" ")[0] for m in metrics
            )
            lines.append(f"<dt>{escape(method)}</dt><dd>{escape(values)}</dd>")
        names = " / ".join(m.replace("_", "-") for m in metrics)
        title = comparison_title(comparison) + (
            "" if comparison.finished else " (unfinished)"
        )
        cards.append(
            f'<div class="card"><h3>{escape(title)}</h3><dl><dt>median</dt>'
            f"<dd>{escape(names)}</dd>{''.join(lines)}</dl></div>"
        )
    return f'<div class="cards">{"".join(cards)}</div>\n' if cards else ""


def _normalisation(results: Results) -> list[str]:
    return [
        f"{suite_title(suite)}: {note}"
        for suite, normaliser in results.normalisers.items()
        for note in normaliser.notes
    ]


def _notes(title: str, notes: Sequence[str]) -> str:
    """Notes for the reader; a long list starts folded."""
    if not notes:
        return ""
    items = "".join(f"<li>{escape(note)}</li>" for note in notes)
    is_open = " open" if len(notes) <= 6 else ""
    heading = f"{escape(title)} ({len(notes)})" if len(notes) > 6 else escape(title)
    return (
        f'<details class="notes"{is_open}><summary>{heading}</summary>'
        f"<ul>{items}</ul></details>\n"
    )


def _section(section: Section, images: Mapping[str, bytes]) -> str:
    parts = [
        _picture(part, images[part.name]) if isinstance(part, Picture) else _table(part)
        for part in section.parts
    ]
    anchor = escape(section.anchor, quote=True)
    return (
        f'<section id="{anchor}"><h2>{escape(section.title)}</h2>\n{"".join(parts)}'
        f"{_notes('Read with care', section.notes)}</section>\n"
    )


def _picture(picture: Picture, image: bytes) -> str:
    caption = escape(picture.caption, quote=True)
    data = base64.b64encode(image).decode()
    # Narrow figures stay narrow, so that all have letters of the same size.
    pixels = int.from_bytes(image[16:20], "big")
    share = min(pixels / (WIDTH * DPI), 1)
    return (
        f'<figure><div class="scroll"><img alt="{caption}" '
        f'style="--share: {share:.3f}" src="data:image/png;base64,{data}"></div>'
        f"<figcaption>{caption}</figcaption></figure>\n"
    )


def _table(table: Table) -> str:
    style = "" if table.numeric else "text"
    head = "".join(f'<th scope="col">{escape(c)}</th>' for c in table.columns)
    rows = []
    for row in table.rows:
        cells = "".join(
            f"<td><strong>{escape(c.text)}</strong></td>"
            if c.bold
            else f"<td>{escape(c.text)}</td>"
            for c in row.cells
        )
        rows.append(
            f'<tr class="quoted">{cells}</tr>' if row.quoted else f"<tr>{cells}</tr>"
        )
    notes = "".join(f"<li>{escape(note)}</li>" for note in table.notes)
    foot = f'<ul class="foot">{notes}</ul>' if notes else ""
    return (
        f'<figure><div class="scroll"><table class="{style}">'
        f"<caption>{escape(table.title)}</caption><thead><tr>{head}</tr></thead>"
        f"<tbody>{''.join(rows)}</tbody></table></div>{foot}</figure>\n"
    )


def _runs(results: Results) -> str:
    table = runs_table(results)
    is_open = " open" if len(table.rows) <= 12 else ""
    return (
        f'<section id="runs"><h2>Runs</h2><details{is_open}><summary>'
        f"{_count(len(table.rows), 'run')} went into this report</summary>"
        f"{_table(table)}</details></section>\n"
    )


def _glossary() -> str:
    items = "".join(
        f"<dt>{escape(term)}</dt><dd>{escape(text)}</dd>"
        for term, text in GLOSSARY.items()
    )
    return (
        f'<section id="glossary"><h2>Metrics</h2><dl class="glossary">{items}</dl>'
        "</section>\n"
    )
