"""What a report directory holds, and that it can be trusted."""

from __future__ import annotations

import csv
import os
import re
from html.parser import HTMLParser

import numpy as np
import pytest

from benchmarks.report import write_run as write_synthetic_run
from rllib_arrow.errors import UserError
from rllib_arrow.reports import write_report
from rllib_arrow.reports.sections import build_sections
from rllib_arrow.reports.tables import Table
from rllib_arrow.runs.load import load_runs
from tests.runs.made import csv_lines, write_csv, write_run


def read(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


@pytest.fixture(scope="module")
def report(tmp_path_factory):
    """Two methods, three seeds, two settings, one run unfinished, with baselines."""
    root = tmp_path_factory.mktemp("report")
    tasks = ["breakout", "asterix", "space_invaders"]
    runs, single = root / "runs", root / "single"
    for method in ("ARROW", "DV3"):
        for seed in (1, 2, 3):
            stop = 7 if (method, seed) == ("DV3", 3) else None
            write_synthetic_run(
                runs / f"d{method}{seed}",
                method,
                "minatar",
                "default",
                seed,
                tasks,
                epochs_per_task=20,
                interval=5,
                stop=stop,
            )
            write_synthetic_run(
                runs / f"t{method}{seed}",
                method,
                "minatar",
                "two_cycle",
                seed,
                tasks,
                epochs_per_task=10,
                cycles=2,
                interval=5,
            )
            for task in tasks:
                write_synthetic_run(
                    single / f"{method}{seed}{task}",
                    method,
                    "minatar",
                    "single",
                    seed,
                    [task],
                    epochs_per_task=20,
                    interval=5,
                )
    page = write_report(load_runs(runs, baselines=single), root / "out")
    assert page == root / "out" / "index.html"
    return root / "out"


def test_the_report_directory_holds_what_the_contract_says(report):
    names = {path.name for path in report.iterdir()}
    assert names == {
        "index.html",
        "metrics.csv",
        "metrics_by_seed.csv",
        "tables.md",
        "figures",
    }
    figures = {path.name for path in (report / "figures").iterdir()}
    for setting in ("default", "two_cycle"):
        for kind in ("headline", "curves", "metrics", "progress", "profiles"):
            assert f"{kind}_minatar_{setting}.png" in figures
    assert "single_minatar.png" in figures
    assert all(name.endswith(".png") for name in figures)


def test_metrics_csv_has_every_metric_of_each_setting(report):
    rows = read(report / "metrics.csv")
    assert list(rows[0]) == "method,suite,setting,metric,median,q25,q75,seeds".split(
        ","
    )
    one = {"F", "FT", "ACC", "min_ACC", "WC_ACC", "SE_frames", "max_performance"}
    one |= {"retention", "FT_area", "zero_shot"}
    two = one | {"Max_F", "Recovery", "C1_F", "C2_F", "C1_FT", "C2_FT"}
    for setting, expected in (("default", one), ("two_cycle", two)):
        for method in ("ARROW", "DV3"):
            found = [
                r["metric"]
                for r in rows
                if (r["method"], r["setting"]) == (method, setting)
            ]
            assert sorted(found) == sorted(expected)


def test_medians_and_quartiles_are_those_of_the_values_by_seed(report):
    by_seed = read(report / "metrics_by_seed.csv")
    assert list(by_seed[0]) == "method,suite,setting,seed,metric,value".split(",")
    for row in read(report / "metrics.csv"):
        if row["metric"] == "max_performance":
            continue
        key = ("method", "suite", "setting", "metric")
        cells = [r["value"] for r in by_seed if all(r[k] == row[k] for k in key)]
        values = [float(cell) for cell in cells if cell]
        assert len(cells) == 3
        assert int(row["seeds"]) == len(values)
        if not values:
            assert (row["median"], row["q25"], row["q75"]) == ("", "", "")
            continue
        found = [float(row[k]) for k in ("q25", "median", "q75")]
        assert found == pytest.approx(np.percentile(values, [25, 50, 75]))


def test_an_unfinished_seed_has_empty_values_beside_finished_ones(report):
    rows = read(report / "metrics_by_seed.csv")
    waiting = [
        r
        for r in rows
        if (r["method"], r["setting"], r["seed"]) == ("DV3", "default", "3")
    ]
    assert waiting and all(r["value"] == "" for r in waiting)
    assert "seed 3: unfinished (epoch 7 of 60" in (report / "index.html").read_text()


def test_no_output_holds_a_silent_nan(report):
    for name in ("metrics.csv", "metrics_by_seed.csv", "tables.md"):
        assert not re.search(r"\b(nan|inf|None)\b", (report / name).read_text()), name
    text = re.sub(r'src="data:[^"]*"', "", (report / "index.html").read_text())
    assert not re.search(r"\b(nan|inf|None)\b", text)


def test_tables_are_in_the_papers_layout_with_the_best_in_bold(report):
    text = (report / "tables.md").read_text()
    head = "| Method | Forgetting ↓ | FT ↑ | ACC ↑ | min-ACC ↑ | WC-ACC ↑ |"
    arrow = text[text.index(head) :].splitlines()[2].split("|")[2].strip()
    assert re.fullmatch(r"\*\*-?\d\.\d{3} \[-?\d\.\d{3} - -?\d\.\d{3}\]\*\*", arrow)
    assert "| Method | C1-F ↓ | C2-F ↓ | Max-F ↓ |" in text
    assert "| Method | C1-FT ↑ | C2-FT ↑ | Recovery ↑ |" in text
    assert "85 % threshold" in text


class Page(HTMLParser):
    """Collects what a browser would fetch, and what it would show."""

    def __init__(self, text):
        super().__init__()
        self.tags, self.links = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append(tag)
        self.links += [v for k, v in attributes if k in ("src", "href", "srcset")]


def test_the_page_is_one_file_with_every_figure_in_it(report):
    text = (report / "index.html").read_text()
    page = Page(text)
    assert all(link.startswith(("data:", "#")) for link in page.links)
    assert page.tags.count("img") == len(list((report / "figures").iterdir()))
    assert "script" not in page.tags
    assert "url(" not in text and "@import" not in text
    for anchor in (link[1:] for link in page.links if link.startswith("#")):
        assert f'id="{anchor}"' in text


def test_the_page_lists_every_run_that_went_in(report):
    text = (report / "index.html").read_text()
    assert text.count("(baseline)") == 18
    assert text.count("<td>unfinished</td>") == 1
    assert text.count("<td>finished</td>") == 29


def test_equal_runs_give_equal_reports(tmp_path):
    run = write_run(tmp_path / "run", {"A": [0, 1, 2], "B": [0, 1, 3]}, [1, 1])
    contents = [
        write_report(load_runs(run), tmp_path / name).read_bytes()
        for name in ("one", "two")
    ]
    assert contents[0] == contents[1]


def test_the_papers_numbers_stand_beside_ours_where_suite_and_setting_match(tmp_path):
    tasks = {"coinrun": [3, 6, 6], "nb": [3, 3, 6]}
    run = write_run(tmp_path / "run", tasks, [1, 1], suite="coinrun")
    single = [
        write_run(
            tmp_path / f"single_{task}",
            {task: [3, 6]},
            [1],
            suite="coinrun",
            setting="single",
        )
        for task in tasks
    ]
    text = write_report(load_runs(run, baselines=single), tmp_path / "out").read_text()
    assert "ARROW, paper" in text
    assert "0.154 [0.103 - 0.243]" in text  # forgetting, CoinRun, default order
    assert "1,638,400 [655,360 - 2,293,760]" in text
    assert "its numbers are not like for like" in text


def test_single_task_atari_numbers_of_the_paper_are_put_in_raw_units(tmp_path):
    run = write_run(
        tmp_path / "run",
        {"ms_pacman": [200, 900]},
        [1],
        suite="atari",
        setting="single",
    )
    text = write_report(load_runs(run, baselines=run), tmp_path / "out").read_text()
    assert "1,925.20" in text  # 96.26 after a reward scale of 0.05
    assert "divided by the scale" in text


def test_an_unfinished_run_at_its_first_evaluation_gives_a_report(tmp_path):
    write_run(tmp_path / "run", {"A": [1.5], "B": [0.5]}, [1, 1])
    page = write_report(load_runs(tmp_path / "run"), tmp_path / "out")
    assert "no score above random is known" in page.read_text()
    assert read(tmp_path / "out" / "metrics.csv") == []


@pytest.mark.parametrize("count", [2, 3, 4, 5])
def test_every_moment_of_a_two_cycle_run_has_its_tables(tmp_path, count):
    scores = {"A": [0, 2, 1, 3, 2], "B": [0, 0, 4, 3, 5]}
    part = {task: values[:count] for task, values in scores.items()}
    write_run(tmp_path / "run", part, [1, 1], cycles=2, setting="two_cycle")
    results = load_runs(tmp_path / "run").results
    first = build_sections(results)[0]
    tables = [part.markdown() for part in first.parts if isinstance(part, Table)]
    assert "nan" not in "".join(tables)
    assert any("unfinished" in note for note in first.notes) == (count < 5)


def test_hostile_names_do_not_reach_the_page_as_markup(tmp_path):
    lines = csv_lines(
        {"<img src=x>": [0, 1, 1], "B&B": [0, 0, 2]}, [1, 1], method="<script>x"
    )
    page = write_report(
        load_runs(
            write_csv(tmp_path / "x.csv", lines),
        ),
        tmp_path / "out",
    )
    text = page.read_text()
    assert "<script>" not in text and "<img src=x>" not in text
    assert "&lt;script&gt;x" in text


def test_a_report_that_fails_leaves_the_old_one_whole(tmp_path, monkeypatch):
    run = write_run(tmp_path / "run", {"A": [0, 1, 2], "B": [0, 1, 3]}, [1, 1])
    page = write_report(load_runs(run), tmp_path / "out")
    before = page.read_bytes()
    monkeypatch.setattr(
        os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "full"))
    )
    with pytest.raises(OSError, match="full"):
        write_report(load_runs(run), tmp_path / "out")
    assert page.read_bytes() == before
    assert not list((tmp_path / "out").rglob("*.tmp"))


def test_an_output_that_is_no_directory_is_refused(tmp_path):
    run = write_run(tmp_path / "run", {"A": [0, 1, 2], "B": [0, 1, 3]}, [1, 1])
    (tmp_path / "out").write_text("in the way")
    with pytest.raises(UserError, match="must be a directory that can be written"):
        write_report(load_runs(run), tmp_path / "out")
