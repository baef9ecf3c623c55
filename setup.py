"""Everything stands in setup.cfg, but for the README as a package index shows it.

An index has no files beside the page: links have to be whole addresses. They are if
PROJECT_URL says where the repository is (`PROJECT_URL=https://host/owner/name pip wheel
.`); else pictures are left out and links are their text.
"""

import os
import re
from pathlib import Path

from setuptools import setup

LINK = re.compile(r"(!?)\[([^][]*)\]\((?!\w+:|#)([^()\s]+)\)")


def for_package_index(text: str, url: str = "") -> str:
    """Returns a Markdown text with no link to a file beside it."""

    def whole(link: re.Match) -> str:
        is_picture, label, path = link.groups()
        if not url:
            return "" if is_picture else label
        place = "raw" if is_picture else "blob"
        return f"{is_picture}[{label}]({url.rstrip('/')}/{place}/main/{path})"

    return LINK.sub(whole, text)


if __name__ == "__main__":
    url = os.environ.get("PROJECT_URL", "")
    readme = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
    setup(
        long_description=for_package_index(readme, url),
        project_urls={"Source": url} if url else {},
    )
