"""Loads Tune callbacks that the command line names."""

from __future__ import annotations

import inspect
import traceback
from collections.abc import Mapping
from importlib import import_module

import yaml
from ray.tune import Callback

from rllib_arrow.errors import UserError, one_line
from rllib_arrow.experiments.mistakes import search_here


def load_callback(text: str) -> Callback:
    """Returns the callback that `module:Class` or `module:Class {key: value}` names."""
    name, brace, rest = text.partition("{")
    module, colon, class_name = name.strip().partition(":")
    if not (module and colon and class_name):
        raise UserError(
            f"--callback {text}: must be module:Class or module:Class {{key: value}}"
        )
    settings = _settings(text, brace + rest) if brace else {}
    search_here()
    try:
        found = getattr(import_module(module), class_name)
    except (ImportError, AttributeError) as error:
        raise UserError(f"--callback {text}: cannot be imported: {error}") from error
    if not (isinstance(found, type) and issubclass(found, Callback)):
        raise UserError(f"--callback {text}: {class_name} is no ray.tune.Callback")
    try:
        return found(**settings)
    except Exception as error:  # whatever a class of the user's may raise
        raise UserError(f"--callback {text}: {_described(error)}") from error


def check_blame(error: BaseException, callbacks: Mapping[str, Callback]) -> None:
    """Raises a UserError if the error came from one of the user's callbacks."""
    frames = traceback.extract_tb(error.__traceback__)
    for text, callback in callbacks.items():
        if inspect.getfile(type(callback)) in {frame.filename for frame in frames}:
            raise UserError(f"--callback {text}: {_described(error)}") from error


def _described(error: BaseException) -> str:
    return one_line(f"{type(error).__name__}: {error}")


def _settings(text: str, block: str) -> dict:
    try:
        settings = yaml.safe_load(block)
    except yaml.YAMLError as error:
        raise UserError(f"--callback {text}: not YAML: {_described(error)}") from error
    if not isinstance(settings, dict) or not all(isinstance(k, str) for k in settings):
        raise UserError(f"--callback {text}: {block} must be {{key: value, ...}}")
    return settings
