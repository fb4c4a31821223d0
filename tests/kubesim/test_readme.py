"""The example in kubesim's README, as a reader copies it."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import kubesim

README = Path(kubesim.__file__).with_name("README.md")


def test_the_example_shows_a_claim_allocated(capsys: pytest.CaptureFixture[str]) -> None:
    [example] = re.findall(r"```python\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    exec(compile(example, str(README), "exec"), {})
    shown = "[{'request': 'gpu', 'driver': 'gpu.example.com', 'pool': 'node-1', 'device': 'gpu-0'}]"
    assert capsys.readouterr().out == f"{shown}\n"


def test_every_name_of_the_face_is_there() -> None:
    for name in kubesim.__all__:
        assert getattr(kubesim, name).__module__.startswith("kubesim.")
    with pytest.raises(AttributeError, match="has no attribute 'nothing'"):
        kubesim.nothing  # noqa: B018
