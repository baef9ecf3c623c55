"""The words that the `rllib` command takes, and how wrong ones are refused."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any, NoReturn

from rllib_arrow.errors import one_line

USER_ERROR = 2  # the exit code


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        """Says what is wrong in one line, where argparse would add its usage."""
        print(
            f"{self.prog}: {one_line(message)} (see {self.prog} --help)",
            file=sys.stderr,
        )
        raise SystemExit(USER_ERROR)


def make_parser() -> argparse.ArgumentParser:
    """Returns the parser; `command` names the function of `cli.py` to be called."""
    common = argparse.ArgumentParser(add_help=False)
    common.add_argument(
        "--debug", action="store_true", help="show tracebacks and Ray's own messages"
    )
    parser = _Parser(prog="rllib", description="Continual learning with RLlib.")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add_train(commands.add_parser("train", help="train an experiment"), common)
    _add_evaluate(
        commands.add_parser("evaluate", parents=[common], help="score a checkpoint")
    )
    _add_report(
        commands.add_parser("report", parents=[common], help="tables and figures")
    )
    _add_example(commands.add_parser("example", help="tuned examples"), common)
    return parser


def _add_train(parser: argparse.ArgumentParser, common: Any) -> None:
    kinds = parser.add_subparsers(required=True, metavar="file")
    file = kinds.add_parser("file", parents=[common], help="train from a YAML file")
    add = file.add_argument
    add("file", metavar="FILE", help="a YAML file, or the name of a tuned example")
    add("--set", action="append", default=[], metavar="KEY.PATH=VALUE")
    add("--stop", action="append", default=[], metavar="KEY=VALUE")
    add("--num-samples", type=_positive, metavar="N", help="one trial per seed")
    add("--storage", default="results", metavar="DIR", help="default: ./results")
    add("--name", type=_name, help="of the run's directory; default: the experiment's")
    add("--resume", action="store_true", help="continue the run of this name")
    add(
        "--callback",
        action="append",
        default=[],
        metavar="MODULE:CLASS",
        help="a Tune callback, with settings: 'module:Class {key: value}'",
    )
    file.set_defaults(command="train")


def _add_evaluate(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("checkpoint", metavar="CHECKPOINT", type=Path)
    add("--episodes", type=_positive, metavar="N", help="per task")
    add("--tasks", type=_names, metavar="a,b", help="default: the run's own")
    add("--csv", type=Path, metavar="OUT", help="write the rows there as well")
    add("--video", type=Path, metavar="DIR", help="write a GIF per task there")
    parser.set_defaults(command="evaluate")


def _add_report(parser: argparse.ArgumentParser) -> None:
    add = parser.add_argument
    add("runs", nargs="+", type=Path, metavar="RUN_DIR_OR_CSV")
    add("--out", required=True, type=Path, metavar="DIR")
    add("--baselines", type=Path, metavar="DIR_OR_CSV", help="single-task runs")
    parser.set_defaults(command="report")


def _add_example(parser: argparse.ArgumentParser, common: Any) -> None:
    kinds = parser.add_subparsers(required=True, metavar="list|show")
    listing = kinds.add_parser("list", parents=[common], help="all of them, in groups")
    listing.set_defaults(command="list_examples")
    show = kinds.add_parser("show", parents=[common], help="print one")
    show.add_argument("name", metavar="NAME")
    show.set_defaults(command="show_example")


def _positive(text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} must be a whole number above 0")
    return int(text)


def _name(text: str) -> str:
    if not text or text in (".", "..") or "/" in text:
        raise argparse.ArgumentTypeError(f"{text!r} must be a plain directory name")
    return text


def _names(text: str) -> list[str]:
    names = [name.strip() for name in text.split(",")]
    if not all(names):
        raise argparse.ArgumentTypeError(f"{text!r} must be names with commas between")
    return names
