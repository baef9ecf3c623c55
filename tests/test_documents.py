"""What the documents tell users to type: every command and link must hold."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from pathlib import Path

import pytest

from rllib_arrow.experiments import tuned_examples
from rllib_arrow.experiments.arguments import make_parser
from rllib_arrow.experiments.experiment import read_experiment
from tests.algorithms.tiny import tiny_config

ROOT = Path(__file__).parents[1]
DOCUMENTS = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
BLOCK = re.compile(r"^ *```(\w*)\n(.*?)^ *```", re.DOTALL | re.MULTILINE)


def commands(path: Path) -> list[str]:
    """All `rllib` commands of a document, loops over methods spelled out."""
    found = []
    for language, text in BLOCK.findall(path.read_text()):
        if language not in ("", "sh", "bash"):
            continue
        for line in text.replace("\\\n", " ").splitlines():
            command = re.search(r"(?<![\w$\"])rllib .*", line)
            methods = ("arrow", "dv3", "tes_sac") if "${method}" in line else ("",)
            for method in methods if command else ():
                found.append(command[0].replace("${method}", method))
    return found


COMMANDS = [
    pytest.param(c, id=f"{p.parent.name}/{p.name}:{c[:60]}")
    for p in DOCUMENTS
    for c in commands(p)
]


def test_commands_are_found():
    assert len(COMMANDS) > 20
    assert any("evaluate" in command.values[0] for command in COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_documents_is_one_that_runs(command, monkeypatch):
    assert not re.search(r"[<>]", command), "the shell would take this for a file"
    words = shlex.split(command, comments=True)[1:]
    args = make_parser().parse_args(words)
    if words[0] == "train":
        monkeypatch.chdir(ROOT)
        file = tuned_examples.find(args.file)
        read_experiment(file, args.set, args.stop, args.num_samples)


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda p: str(p.relative_to(ROOT)))
def test_links_lead_somewhere(path):
    for target in re.findall(r"\]\(([^)#\s]+)", path.read_text()):
        if "://" not in target:
            assert (path.parent / target).exists(), target


def python_blocks(path: Path) -> list[str]:
    blocks = BLOCK.findall(path.read_text())
    return [text for language, text in blocks if language == "python"]


def test_the_tree_in_the_architecture_names_every_file_of_the_package():
    blocks = BLOCK.findall((ROOT / "docs" / "architecture.md").read_text())
    (tree,) = (text for _, text in blocks if text.startswith("rllib_arrow/"))
    files = (path.name for path in (ROOT / "rllib_arrow").rglob("*.py"))
    there = Counter(name for name in files if name != "__init__.py")
    assert Counter(re.findall(r"\b[a-z]\w*\.py", tree)) == there


def test_the_python_example_is_arrow_minatar():
    text, _ = python_blocks(DOCUMENTS[0])
    names: dict = {}
    exec(text.split("algorithm =")[0], names)
    config = names["config"]
    config.validate()
    example = read_experiment(ROOT / "tuned_examples" / "arrow_minatar.yaml").config
    assert config.curriculum.items() <= example.pop("curriculum").items()
    for key, value in example.items():
        assert getattr(config, key) == value, key


def test_the_readmes_loop_plays_a_checkpoint(
    tmp_path, monkeypatch, capsys, ray_two_cpus
):
    _, text = python_blocks(DOCUMENTS[0])
    path = tmp_path / re.search(r'Path\("(\S+)"\)', text)[1]
    config = tiny_config("ARROW").evaluation(evaluation_interval=None)
    algorithm = config.build_algo()
    algorithm.train()
    algorithm.save_to_path(str(path))
    algorithm.stop()
    monkeypatch.chdir(tmp_path)
    exec(text, {})
    assert float(capsys.readouterr().out.splitlines()[-1]) >= 0


@pytest.mark.slow
def test_the_page_for_users_of_rllib_runs_from_top_to_bottom(
    tmp_path, monkeypatch, capsys, ray_two_cpus
):
    monkeypatch.chdir(tmp_path)
    names: dict = {}
    for block in python_blocks(ROOT / "docs" / "rllib.md"):
        exec(block, names)
    assert not names["results"].errors and not names["population"].errors
    assert [r.metrics["training_iteration"] for r in names["population"]] == [4, 4]
    scores = names["runs"].scores
    assert set(scores.eval_task) == {"breakout", "space_invaders"}
    assert scores.run.nunique() == 2 and not names["runs"].metrics.empty
