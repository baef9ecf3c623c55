"""Publishing: raw files, balanced reports, tables between markers."""

import json
from dataclasses import replace

import pandas as pd
import pytest

from benchmarks.evidence import publish as publishing
from benchmarks.evidence import tables
from benchmarks.evidence.publish import (
    balanced,
    copy_headline,
    finished_seeds,
    publish,
    recall,
)
from benchmarks.evidence.runner import ROOT
from rllib_arrow import load_runs
from rllib_arrow.envs.references import SINGLE
from rllib_arrow.runs.inside import Inside, to_csv

MARKED = """# Games

Before.

<!-- evidence: default -->
old
<!-- /evidence -->

Between.

<!-- evidence: paper default -->
<!-- /evidence -->
After.
"""


@pytest.fixture
def out(tmp_path):
    path = tmp_path / "pages"
    (path / "games").mkdir(parents=True)
    (path / "games" / "README.md").write_text(MARKED)
    (path / "README.md").write_text("<!-- evidence: headline -->\n<!-- /evidence -->\n")
    return path


def shown(plan, storage, out):
    found = balanced(plan, ["games/default", "games/default-sac"], storage, out)
    return [path.name for path in found.paths], found.notes


def test_only_seeds_that_all_methods_have_are_shown(make_runner, plan, storage, out):
    (storage / "fails").write_text("dv3_1")
    make_runner(["games/default/"])[0].go()
    assert finished_seeds(plan.group("games/default"), storage) == [3]
    names, notes = shown(plan, storage, out)
    assert names == ["arrow_3", "dv3_3"]
    assert notes == [
        "default, ARROW, DV3: 1 of 2 seeds are finished",
        "default, TES-SAC: 0 of 2 seeds are finished",
    ]


def test_a_further_group_joins_once_it_has_more_than_half_the_seeds_of_the_first(
    make_runner, plan, storage, out
):
    make_runner(["games/default/"])[0].go()
    (storage / "fails").write_text("tes_sac_1")
    make_runner(["games/default-sac"])[0].go()
    assert shown(plan, storage, out)[0] == ["arrow_3", "dv3_3", "arrow_1", "dv3_1"]
    (storage / "fails").unlink()
    make_runner(["games/default-sac"])[0].go()
    names, notes = shown(plan, storage, out)
    assert names[4:] == ["tes_sac_3", "tes_sac_1"] and not notes


def test_all_are_shown_with_the_seeds_of_the_group_that_has_fewest(
    monkeypatch, plan, storage, out
):
    seeds = {"games/default": [1, 2, 3, 4, 5], "games/default-sac": [1, 4, 5]}
    groups = {name: replace(plan.group(name), seeds=(1, 2, 3, 4, 5)) for name in seeds}
    monkeypatch.setattr(type(plan), "group", lambda self, name: groups[name])
    monkeypatch.setattr(
        publishing, "finished_seeds", lambda group, storage: seeds[group.name]
    )
    found = publishing.balanced(plan, list(groups), storage, out)
    names = sorted({path.name.rpartition("_")[2] for path in found.paths})
    assert names == ["1", "4", "5"] and len(found.paths) == 9
    seeds["games/default-sac"] = [1, 4]  # too few to take the others' seeds away
    found = publishing.balanced(plan, list(groups), storage, out)
    assert len(found.paths) == 10


def test_a_page_gets_raw_files_report_and_tables_and_keeps_its_words(
    make_runner, plan, storage, out
):
    make_runner()[0].go()
    told: list[str] = []
    publish(plan, storage, out, told.append)
    assert not told
    raw = out / "games" / "runs" / "default" / "arrow_3"
    assert sorted(path.name for path in raw.iterdir()) == [
        "curriculum.json",
        "evaluations.csv",
        "evidence.json",
        "experiment.json",
    ]
    assert json.loads((raw / "evidence.json").read_text())["commits"] == ["c1"]
    metrics = pd.read_csv(out / "games" / "report" / "metrics.csv")
    assert set(metrics.method) == {"ARROW", "DV3", "TES-SAC"}
    assert set(metrics.seeds) <= {0, 2}
    text = (out / "games" / "README.md").read_text()
    for words in ("# Games\n\nBefore.\n", "\nBetween.\n", "After.\n"):
        assert words in text
    assert "old" not in text and "Still missing" not in text
    head = "| median over the seeds [quartiles] | random | ARROW (2 seeds) "
    assert f"{head}| DV3 (2 seeds) | TES-SAC (2 seeds) |\n" in text
    # Seeds 3 and 1: the first task ends at 9.03 and 9.01 of 11 with ARROW.
    assert "| A after its own training | 1.00 | 11.00 | 11.00 | 11.00 |\n" in text
    assert "| A at the end | 1.00 | 9.02 | 3.02 | 2.02 |\n" in text
    assert "| B at the end | 1.00 | 11.00 | 11.00 | 11.00 |\n" in text
    # Lost of the first task: (11 - 9.02) / 10 of two tasks' mean, with ARROW.
    assert "| Forgetting, F (less is better) |  | 0.10 [0.10 - 0.10] | 0.40 " in text
    assert "| Replay memory at the end, MB |  | 2.00 | 2.00 |  |\n" in text
    assert json.loads((raw / "evidence.json").read_text())["replay_bytes"] == 2_000_003
    # Differences of seeds 3 and 1 are the same.
    assert "- ARROW minus DV3: retention +0.60 [+0.60, +0.60], above zero in 2" in text
    assert "| median | ARROW, here | ARROW, paper | DV3, here | DV3, paper |" in text
    assert "| Forgetting, F | 0.10 | 0.12 | 0.40 | 2.26 | 0.45 | 0.19 |\n" in text


def test_publishing_again_changes_nothing(make_runner, plan, storage, out):
    make_runner()[0].go()
    texts = []
    for _ in range(2):
        publish(plan, storage, out, lambda line: None)
        texts.append((out / "games" / "README.md").read_text())
    assert texts[0] == texts[1]


def test_a_table_says_what_it_lacks(make_runner, plan, storage, out):
    make_runner(["games/default/arrow_3", "games/default/dv3_3"])[0].go()
    publish(plan, storage, out, lambda line: None)
    text = (out / "games" / "README.md").read_text()
    assert "ARROW (1 seed)" in text
    # One seed has no spread.
    assert "| Forgetting, F (less is better) |  | 0.10 | 0.40 |\n" in text
    assert "- ARROW minus DV3: retention +0.60 (one seed); F " in text
    assert (
        "Still missing: default, ARROW, DV3: 1 of 2 seeds are finished; "
        "default, TES-SAC: 0 of 2 seeds are finished.\n" in text
    )
    # Without single-task runs there is no forward transfer of ours to show.
    assert "| Forward transfer, FT |  | -0.19 |  | 0.61 |\n" in text


def test_a_run_of_another_commit_is_named(make_runner, plan, storage, out):
    make_runner(["games/default/arrow_3", "games/default/dv3"])[0].go()
    make_runner(["games/default/"], commit="c2")[0].go()
    told: list[str] = []
    publish(plan, storage, out, told.append)
    assert "Of another commit than the rest: games/default/arrow_1 (c2)" in told


def test_nothing_finished_leaves_the_documents_alone(plan, storage, out):
    publish(plan, storage, out, lambda line: None)
    assert (out / "games" / "README.md").read_text() == MARKED


def test_a_document_of_its_own_gets_tables_as_they_come(
    make_runner, plan, storage, tmp_path
):
    page = tmp_path / "new" / "games" / "README.md"
    make_runner(["games/single"])[0].go()
    publish(plan, storage, tmp_path / "new", lambda line: None)
    assert not page.exists()
    make_runner(["games/default/"])[0].go()
    for _ in range(2):
        publish(plan, storage, tmp_path / "new", lambda line: None)
    assert page.read_text().count("| A at the end") == 1
    assert page.read_text().count("## paper default") == 1


def test_the_headline_is_copied_with_links_that_lead_somewhere(
    make_runner, plan, storage, out, tmp_path
):
    make_runner()[0].go()
    publish(plan, storage, out, lambda line: None)
    readme = tmp_path / "README.md"
    readme.write_text("Top.\n<!-- evidence: headline -->\n<!-- /evidence -->\n")
    copy_headline(out / "README.md", readme)
    text = readme.read_text()
    # (9.02 - 1) / 10 and 1 for the two tasks.
    line = (
        "| [kept of two games](pages/games/README.md) | 0.90 [0.90 - 0.90], 2 seeds |"
    )
    assert text.startswith("Top.\n") and line in text


def test_a_two_cycle_table_has_the_metrics_of_cycles(tmp_path):
    rows = ["method,suite,setting,seed,epoch,frames,trained_task,eval_task"]
    rows[0] += ",return_mean,return_std,episodes"
    for epoch, task in enumerate(["", "a", "b", "a", "b"]):
        for name in "ab":
            score = 1.0 + epoch
            rows.append(
                f"ARROW,x,two_cycle,1,{epoch},{epoch},{task},{name},{score},0,8"
            )
    path = tmp_path / "evaluations.csv"
    path.write_text("\n".join(rows) + "\n")
    text = tables.setting_table(load_runs(path), "two_cycle")
    assert "| A at the end | 1.00 | 5.00 |" in text and "own training" not in text
    assert "Largest drop, Max-F" in text
    assert tables.setting_table(load_runs(path), "default") == ""


def test_published_runs_are_not_run_again_where_the_storage_is_new(
    make_runner, plan, storage, out, tmp_path
):
    make_runner(["games/default/"])[0].go()
    publish(plan, storage, out, tell=lambda line: None)
    pages = {p: p.read_bytes() for p in sorted(out.rglob("*.md"))}
    elsewhere = tmp_path / "elsewhere"
    recall(plan, elsewhere, out)
    assert finished_seeds(plan.group("games/default"), elsewhere) == [3, 1]
    assert finished_seeds(plan.group("games/single"), elsewhere) == []
    publish(plan, elsewhere, out, tell=lambda line: None)
    assert {p: p.read_bytes() for p in sorted(out.rglob("*.md"))} == pages


def test_a_report_without_a_new_run_is_left_alone_unless_all_is_made_afresh(
    make_runner, plan, storage, out
):
    make_runner(["games/default/"])[0].go()
    publish(plan, storage, out, lambda line: None, afresh=False)
    page = out / "games" / "report" / "index.html"
    assert "ARROW" in page.read_text()
    page.write_text("as it was")
    publish(plan, storage, out, lambda line: None, afresh=False)
    assert page.read_text() == "as it was"
    make_runner(["games/default-sac"])[0].go()
    publish(plan, storage, out, lambda line: None, afresh=False)
    assert "TES-SAC" in page.read_text()
    page.write_text("as it was")
    publish(plan, storage, out, lambda line: None)
    assert "TES-SAC" in page.read_text()


def test_a_report_is_made_again_if_it_was_cut_off_the_last_time(
    make_runner, plan, storage, out, monkeypatch
):
    make_runner(["games/default/"])[0].go()
    publish(plan, storage, out, lambda line: None, afresh=False)
    make_runner(["games/default-sac"])[0].go()
    with monkeypatch.context() as broken:
        broken.setattr(publishing, "page_tables", None)
        with pytest.raises(TypeError):
            publish(plan, storage, out, lambda line: None, afresh=False)
    assert "TES-SAC (2" not in (out / "games" / "README.md").read_text()
    publish(plan, storage, out, lambda line: None, afresh=False)
    assert "TES-SAC (2" in (out / "games" / "README.md").read_text()
    made_of = (out / "games" / "report" / "made_of.txt").read_text()
    assert made_of.count(" runs/default") == 6 and "lacks" not in made_of


def test_every_finished_single_task_run_counts(make_runner, plan, storage, out):
    (storage / "fails").write_text("arrow_b_1")
    make_runner(["games/single"])[0].go()
    found = publishing._baselines(plan, plan.pages[0], storage, out)
    names = {path.parent.name for path in found}
    assert names == {"arrow_a_3", "arrow_b_3", "arrow_a_1"}


def test_a_page_says_whose_single_task_runs_forward_transfer_is_measured_with(
    make_runner, plan, storage, out
):
    make_runner()[0].go()
    publish(plan, storage, out, lambda line: None)
    line = (
        "Forward transfer compares with single-task runs: of DV3, TES-SAC with "
        "ARROW's.\n"
    )
    assert line in (out / "games" / "README.md").read_text()


def test_the_headline_has_the_seeds_that_all_its_methods_have(monkeypatch):
    told = {"ARROW": {1: 0.2, 2: 0.4, 3: 0.9}, "QUIVER": {2: 0.5, 3: 0.7}, "DV3": {}}
    monkeypatch.setattr(
        tables,
        "_by_seed",
        lambda runs, setting, method, metric: pd.Series(told[method]),
    )
    line = {"setting": "default", "metric": "ACC"}
    cells = tables._headline_cells([None], line, ["ARROW", "DV3", "QUIVER"])
    assert cells == ["0.65 [0.53 - 0.78], 2 seeds", "", "0.60 [0.55 - 0.65], 2 seeds"]


def test_shipped_single_task_scores_are_the_medians_of_the_published_runs():
    scores = load_runs(ROOT / "docs/results/minatar/runs/single").scores
    last = scores[scores.epoch == scores.epoch.max()]
    shipped = {
        task if suite == "minatar" else f"{suite}/{task}": score
        for suite, tasks in SINGLE.items()
        for task, score in tasks.items()
    }
    medians = last.groupby("eval_task").return_mean.median()
    assert shipped == pytest.approx(medians.to_dict(), abs=5e-4)


def test_what_parts_forgot_is_copied_and_stands_on_a_page_of_its_own(
    make_runner, plan, storage, out
):
    make_runner(["games/default/"])[0].go()
    rows = [(0, "a", 0.2), (2, "a", 1.0), (4, "a", 0.6), (0, "b", 0.2), (4, "b", 1.0)]
    found = [Inside(e, task, 1, "actor", "agreement", v) for e, task, v in rows]
    for trial in storage.glob("games/default/*/00000_*"):
        (trial / "inside.csv").write_text(to_csv(Inside, found))
    publish(plan, storage, out, lambda line: None)
    assert (out / "games/runs/default/dv3_3/inside.csv").exists()
    page = (out / "inside" / "README.md").read_text()
    assert "<!-- evidence: games default -->" in page
    assert "| actor | 0.50 [0.50, 0.50] | 0.50 [0.50, 0.50] | +0.00 [" in page
    assert "Inside" in (out / "games/report/index.html").read_text()
