"""What is installed: the requirements, their pins, and a wheel that works by itself."""

from __future__ import annotations

import configparser
import os
import re
import runpy
import shutil
import subprocess
import sys
import venv
from importlib import metadata
from itertools import product
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
MACHINES = [("linux", "x86_64"), ("linux", "aarch64"), ("darwin", "arm64")]
PYTHONS = ["3.10", "3.11", "3.12", "3.13", "3.14"]
ENVIRONMENTS = [
    {"python_version": python, "sys_platform": system, "platform_machine": machine}
    for python, (system, machine) in product(PYTHONS, MACHINES)
]


def requirements(*extras: str) -> list[Requirement]:
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg")
    texts = [config["options"]["install_requires"]]
    texts += [config["options.extras_require"][extra] for extra in extras]
    lines = "\n".join(texts).splitlines()
    return [Requirement(line) for line in lines if line.strip() and line[0] != "#"]


def pins() -> list[Requirement]:
    lines = (ROOT / "constraints.txt").read_text().splitlines()
    return [Requirement(line) for line in lines if line and line[0] != "#"]


def active(found: list[Requirement], environment: dict[str, str]) -> list[Requirement]:
    return [r for r in found if r.marker is None or r.marker.evaluate(environment)]


def named(found: list[Requirement], name: str) -> list[Requirement]:
    name = canonicalize_name(name)
    return [r for r in found if canonicalize_name(r.name) == name]


@pytest.mark.parametrize(
    "environment", ENVIRONMENTS, ids=lambda e: "-".join(e.values())
)
def test_a_requirement_has_one_exact_pin_that_it_allows(environment):
    pinned = active(pins(), environment)
    for requirement in active(requirements("dev", "bench"), environment):
        (pin,) = named(pinned, requirement.name)
        (exact,) = pin.specifier
        assert exact.operator == "=="
        assert requirement.specifier.contains(exact.version), requirement


@pytest.mark.parametrize(
    "environment", ENVIRONMENTS, ids=lambda e: "-".join(e.values())
)
def test_procgen_and_an_old_numpy_come_only_where_procgen_is_published(environment):
    published = (
        environment["python_version"] in ("3.10", "3.11", "3.12")
        and environment["sys_platform"] == "linux"
        and environment["platform_machine"] == "x86_64"
    )
    required = active(requirements(), environment)
    assert [r for r in required if "procgen" in r.name] != [] or not published
    assert published or not [r for r in required if "procgen" in r.name]
    (numpy,) = named(active(pins(), environment), "numpy")
    assert numpy.specifier.contains("1.26.4") == published
    asked_for = active(requirements("procgen"), environment)
    assert [r for r in asked_for if "procgen" in r.name]


def test_the_installed_versions_are_those_pinned():
    installed = {canonicalize_name(d.name): d.version for d in metadata.distributions()}
    for pin in active(pins(), {}):
        version = installed.get(canonicalize_name(pin.name))
        assert version is None or pin.specifier.contains(version), (pin, version)


def run(*command: str | Path, cwd: Path) -> str:
    """Runs a command away from the checkout; returns what it prints."""
    kept = {k: v for k, v in os.environ.items() if not k.startswith("PYTHON")}
    done = subprocess.run(command, cwd=cwd, env=kept, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


TINY = """
import rllib_arrow
from pathlib import Path
from importlib import metadata
package = Path(rllib_arrow.__file__).parent
assert "site-packages" in package.parts, package
assert (package / "py.typed").is_file()
assert rllib_arrow.__version__ == metadata.version("rllib_arrow") == "0.1.0"
about = metadata.metadata("rllib_arrow")
assert about["License-Expression"] == "Apache-2.0"
assert "LICENSE" in about.get_all("License-File")
readme = about.get_payload() or about["Description"]
assert "# rllib_arrow" in readme and "](docs/" not in readme
"""


def test_the_readme_of_a_package_index_has_no_link_to_a_file_beside_it():
    for_package_index = runpy.run_path(str(ROOT / "setup.py"))["for_package_index"]
    readme = (ROOT / "README.md").read_text()
    alone = for_package_index(readme)
    assert not re.search(r"\]\((?!https?:|#)", alone) and "![" not in alone
    assert "[architecture](docs/architecture.md)" in readme and "architecture," in alone
    there = for_package_index(readme, "https://host/owner/name/")
    page = "https://host/owner/name/blob/main/docs/architecture.md"
    assert f"[architecture]({page})" in there
    for film in (ROOT / "docs" / "films").iterdir():
        assert film.stat().st_size < 2**20
        assert f"(https://host/owner/name/raw/main/docs/films/{film.name})" in there


def copy_of_the_source(place: Path) -> Path:
    """A build leaves files behind, and would find those of another build."""
    source = place / "source"
    for part in ("rllib_arrow", "tuned_examples"):
        shutil.copytree(ROOT / part, source / part)
    for part in ("setup.cfg", "setup.py", "pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / part, source)
    return source


@pytest.mark.slow
def test_a_wheel_trains_and_reports_in_a_fresh_environment(tmp_path):
    source = copy_of_the_source(tmp_path)
    pip = (sys.executable, "-m", "pip")
    run(*pip, "wheel", "--no-deps", "-w", tmp_path, source, cwd=tmp_path)
    (wheel,) = tmp_path.glob("rllib_arrow-*.whl")
    venv.create(tmp_path / "fresh", with_pip=True)
    python = tmp_path / "fresh" / "bin" / "python"
    constraints = ROOT / "constraints.txt"
    run(python, "-m", "pip", "install", "-c", constraints, wheel, cwd=tmp_path)
    run(python, "-c", TINY, cwd=tmp_path)

    rllib = python.with_name("rllib")
    examples = {path.stem for path in (ROOT / "tuned_examples").glob("*.yaml")}
    listed = run(rllib, "example", "list", cwd=tmp_path).split()
    assert examples <= set(listed)
    run(rllib, "train", "file", "arrow_smoke", "--storage", "runs", cwd=tmp_path)
    assert list(tmp_path.glob("runs/arrow_smoke/*/evaluations.csv"))
    run(rllib, "report", "runs", "--out", "report", cwd=tmp_path)
    assert "<html" in (tmp_path / "report" / "index.html").read_text()
