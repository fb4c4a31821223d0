"""A file is read up to a limit, whatever it says of its size."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from kube.base.files import read_regular


def test_a_file_is_read_to_its_end_or_to_the_limit(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"a" * 10)
    assert read_regular(file, 10) == b"a" * 10
    with pytest.raises(OSError, match="larger") as told:
        read_regular(file, 9)
    assert told.value.errno == errno.EFBIG


def test_a_file_that_says_that_it_is_empty_is_read_as_well() -> None:
    """Those of /proc have no size."""
    limits = Path("/proc/self/limits")
    assert limits.stat().st_size == 0
    assert b"Max open files" in read_regular(limits, 1 << 16)
