"""Files appear whole or not at all."""

from __future__ import annotations

import errno

import pytest
from pyarrow.fs import LocalFileSystem

from rllib_arrow.files import replacing, write_aside, write_aside_in


def test_a_file_is_replaced_and_nothing_is_left_beside_it(tmp_path):
    target = tmp_path / "scores.csv"
    write_aside(target, "old")
    write_aside(target, b"new")
    assert target.read_bytes() == b"new"
    assert list(tmp_path.iterdir()) == [target]


@pytest.mark.parametrize("error", [OSError(errno.ENOSPC, "full"), KeyboardInterrupt()])
def test_a_failed_write_leaves_the_old_content_and_no_rest(tmp_path, error):
    target = tmp_path / "scores.csv"
    write_aside(target, "old")
    with pytest.raises(type(error)), replacing(target) as file:
        file.write(b"half")
        raise error
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_an_error_of_the_disk_names_the_file_and_not_the_temporary_one(tmp_path):
    with pytest.raises(OSError) as caught, replacing(tmp_path / "a") as file:
        raise OSError(errno.ENOSPC, "No space left on device", file.name)
    assert caught.value.filename == str(tmp_path / "a")


def test_a_file_of_a_storage_is_replaced_too(tmp_path):
    target = tmp_path / "list.json"
    for content in (b"1", b"22"):
        write_aside_in(LocalFileSystem(), str(target), content)
    assert target.read_bytes() == b"22"
    assert list(tmp_path.iterdir()) == [target]
