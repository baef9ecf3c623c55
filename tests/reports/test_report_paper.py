"""The paper's tables, loaded and rendered again, against rows of its source."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from rllib_arrow.envs import references
from rllib_arrow.envs.suites import SUITES
from rllib_arrow.reports import paper
from rllib_arrow.reports.tables import efficiency_table, metric_blocks, metric_table

SETTINGS = {"Default": "default", "Reversed": "reversed", "Two": "two_cycle"}
SOURCE = Path(__file__).with_name("paper_rows.tex").read_text(encoding="utf-8")


def source_tables() -> dict[str, list[str]]:
    """The source's rows by table label."""
    tables: dict[str, list[str]] = {}
    for line in SOURCE.splitlines():
        if line.startswith("% tab:"):
            tables[line[2:]] = []
        else:
            tables[list(tables)[-1]].append(line)
    return tables


TABLES = source_tables()


def cells(line: str) -> list[tuple[str, bool]]:
    """The cells of a source row as text, and whether they are bold."""
    result = []
    for cell in line.replace("\\\\", "").split("&"):
        text = re.sub(r"\\multirow\{\d\}\{\*\}", "", cell)
        text = re.sub(r"\\textbf|[{}]", "", text)
        text = text.replace("$\\downarrow$", "↓").replace("$\\uparrow$", "↑")
        result.append((" ".join(text.replace("--", "-").split()), "\\textbf" in cell))
    return result


def source_blocks(label: str) -> list[tuple[str, list[list[tuple[str, bool]]]]]:
    """A metric table's blocks: setting, then its head and rows."""
    blocks: list[tuple[str, list[list[tuple[str, bool]]]]] = []
    setting = ""
    for line in TABLES[label]:
        if "&" not in line:
            setting = SETTINGS[re.search(r"textbf\{(\w+)", line).group(1)]
        elif "arrow$" in line:
            blocks.append((setting, [cells(line)]))
        else:
            blocks[-1][1].append(cells(line))
    return blocks


@pytest.mark.parametrize(
    ("label", "suite", "methods"),
    [
        ("tab:atari_baselines_all", "atari", paper.BASELINES),
        ("tab:coinrun_baselines_all", "coinrun", paper.BASELINES),
        ("tab:atari_arrows_all", "atari", paper.RATIOS),
        ("tab:coinrun_arrows_all", "coinrun", paper.RATIOS),
    ],
)
def test_metric_tables_render_as_the_source_has_them_bold_included(
    label, suite, methods
):
    expected = source_blocks(label)
    assert [setting for setting, _ in expected] == [
        "default",
        "reversed",
        *["two_cycle"] * 3,
    ]
    metrics = [*metric_blocks(1), *metric_blocks(1), *metric_blocks(2)]
    for (setting, (head, *rows)), block in zip(expected, metrics, strict=True):
        values = {m: paper.METRICS[suite, setting][m] for m in methods}
        table = metric_table("", block, values)
        assert table.columns[1:] == [text for text, _ in head[1:]]
        assert [[tuple(cell) for cell in row.cells] for row in table.rows] == rows


@pytest.mark.parametrize(
    ("label", "suite", "ratios"),
    [
        ("tab:atari_cl_sample_efficiency", "atari", False),
        ("tab:coinrun_cl_sample_efficiency", "coinrun", False),
        ("tab:atari_cl_sample_efficiency_arrows", "atari", True),
        ("tab:coinrun_cl_sample_efficiency_arrows", "coinrun", True),
    ],
)
def test_continual_efficiency_tables_render_as_the_source_has_them(
    label, suite, ratios
):
    blocks = [
        (name, paper.CONTINUAL_EFFICIENCY[suite, name, ratios], runs_of(ratios), None)
        for name in SETTINGS.values()
    ]
    middle = dict.fromkeys(SETTINGS.values(), paper.FRAMES // 2)
    table = efficiency_table("", "Setting", blocks, middle)
    rows = [cells(line) for line in TABLES[label] if "&" in line][1:]
    ours = [[tuple(cell) for cell in row.cells[1:]] for row in table.rows]
    compare_efficiency(ours, rows)


@pytest.mark.parametrize("suite", ["atari", "coinrun"])
def test_single_task_efficiency_tables_render_as_the_source_has_them(suite):
    blocks = [
        (task, block, runs_of(False), None)
        for (name, task), block in paper.SINGLE_TASK_EFFICIENCY.items()
        if name == suite
    ]
    table = efficiency_table("", "Task", blocks)
    lines = TABLES[f"tab:{suite}_single_sample_efficiency"]
    rows = [cells(line) for line in lines if "&" in line][1:]
    ours = [[tuple(cell) for cell in row.cells] for row in table.rows]
    compare_efficiency(ours, rows)


def runs_of(ratios):
    return dict.fromkeys(paper.RATIOS if ratios else paper.BASELINES, paper.SEEDS)


def compare_efficiency(ours, rows):
    """Texts are equal; the paper bolds the fewest frames, but not always every tie."""
    assert len(ours) == len(rows)
    for mine, theirs in zip(ours, rows, strict=True):
        texts = [
            re.sub("Never reached 85.*", "Never reached threshold", t)
            for t, _ in theirs
        ]
        assert [text for text, _ in mine] == texts
        assert mine[-2][1] or not theirs[-2][1]
    bold = [mine[-2][0].split(" ")[0] for mine in ours if mine[-2][1]]
    printed = [theirs[-2][0].split(" ")[0] for theirs in rows if theirs[-2][1]]
    assert set(bold) == set(printed)


@pytest.mark.parametrize("name", ["atari", "coinrun"])
def test_single_task_scores_are_those_of_the_source(name):
    suite, found = SUITES[name], {}
    for line in TABLES[f"tab:results_{name}"][1:]:
        label, *numbers = (text for text, _ in cells(line))
        found[label] = [float(number) for number in numbers]
    scales = {task: [suite.reward_scale(task)] for task in suite.tasks}
    assert found == {
        suite.labels[task]: [*(scales[task] if name == "atari" else []), *scores]
        for task, scores in references.PAPER[name].items()
    }


def test_the_default_split_is_one_and_the_same_method():
    for methods in paper.METRICS.values():
        assert methods["ARROW"] == methods["AR50"]
