"""The page in a real browser: all of it loads, nothing is asked of the network."""

from __future__ import annotations

import json
import re
import shutil
import subprocess

import pytest

from benchmarks.report import write_run
from rllib_arrow.reports import write_report
from rllib_arrow.runs.load import load_runs
from tests.reports.made_inside import write_inside

BROWSER = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(BROWSER is None, reason="chromium is not installed")

INSIDE = ["memory", "parts", "plasticity", "strips"]

# Written by the test into a copy of the page: the page itself has no script.
PROBE = """<script>
const root = document.documentElement;
addEventListener("load", () => { root.dataset.probe = JSON.stringify({
  images: [...document.images].map(i => i.complete ? i.naturalWidth : 0),
  tables: [...document.querySelectorAll("table")].map(t => t.offsetHeight),
  background: getComputedStyle(document.body).backgroundColor,
  overflow: root.scrollWidth - innerWidth}); });
</script></body>"""


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    root = tmp_path_factory.mktemp("browser")
    tasks = ["breakout", "space_invaders"]
    for method in ("ARROW", "DV3", "AR25"):
        for seed in (1, 2):
            write_run(
                root / "runs" / f"{method}{seed}",
                method,
                "minatar",
                "two_cycle",
                seed,
                tasks,
                epochs_per_task=10,
                cycles=2,
                interval=5,
            )
            if method != "AR25":
                write_inside(root / "runs" / f"{method}{seed}", tasks, 10, 2, 5, seed)
    return write_report(load_runs(root / "runs"), root / "report")


def browse(page, tmp_path, *flags):
    command = [
        BROWSER,
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-background-networking",
        "--disable-component-update",
        "--disable-sync",
        "--enable-logging=stderr",
        f"--user-data-dir={tmp_path / 'profile'}",
        *flags,
        "--dump-dom",
        page.as_uri(),
    ]
    return subprocess.run(
        command, capture_output=True, text=True, timeout=120, check=True
    )


def probe(page, tmp_path, *flags):
    """Opens a copy of the page that reports on itself."""
    text = page.read_text().replace("</body>", PROBE)
    text = text.replace(
        "default-src 'none'", "default-src 'none'; script-src 'unsafe-inline'"
    )
    copy = tmp_path / "probe.html"
    copy.write_text(text)
    done = browse(copy, tmp_path, *flags)
    found = re.search(r'data-probe="([^"]*)"', done.stdout).group(1)
    return json.loads(found.replace("&quot;", '"'))


def test_the_page_opens_without_console_errors_or_requests(page, tmp_path):
    log = tmp_path / "net.json"
    done = browse(page, tmp_path, f"--log-net-log={log}")
    assert "CONSOLE" not in done.stderr
    assert "Read with care" in done.stdout
    assert "Inside: MinAtar, two cycles" in done.stdout
    events = re.findall(r'"initiator":"([^"]*)".*?"url":"([^"]*)"', log.read_text())
    asked = [url for initiator, url in events if initiator != "not an origin"]
    assert [url for url in asked if not url.startswith(("file:", "data:"))] == []


def test_every_image_and_table_is_there_on_a_wide_light_screen(page, tmp_path):
    light = "--blink-settings=preferredColorScheme=1"
    seen = probe(page, tmp_path, light, "--window-size=1280,900")
    figures = list((page.parent / "figures").iterdir())
    assert len(seen["images"]) == len(figures) and min(seen["images"]) > 0
    assert len(seen["tables"]) >= 8 and min(seen["tables"]) > 0
    inside = sorted(f.name for f in figures if f.name.startswith("inside_"))
    assert [name.split("_")[1] for name in inside] == INSIDE
    assert seen["background"] == "rgb(255, 255, 255)"
    assert seen["overflow"] <= 0


def test_on_a_dark_phone_the_page_is_dark_and_does_not_scroll_sideways(page, tmp_path):
    dark = "--blink-settings=preferredColorScheme=0"
    seen = probe(page, tmp_path, dark, "--window-size=390,844")
    assert min(seen["images"]) > 0
    assert seen["background"] == "rgb(22, 27, 34)"
    assert seen["overflow"] <= 0
