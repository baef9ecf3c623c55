"""The one kind of error that is the user's to mend."""

from __future__ import annotations


class UserError(ValueError):
    """A mistake in a file, a setting or an option, or a file that is damaged.

    The message is one line that names the thing, its value and the remedy. The command
    line prints it and ends with exit code 2; any other exception is a bug of ours.
    """


def one_line(text: object) -> str:
    """Returns an error, or anything else that can be shown, on one line."""
    return " ".join(str(text).split())
