"""docs/vendor-guide.md, followed literally: its shell blocks are run, its changes made."""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path

from tests.programs import ended

GUIDE = Path(__file__).resolve().parents[2] / "docs" / "vendor-guide.md"


def section(number: int) -> str:
    """The text of a numbered section."""
    return re.split(r"^## \d\. ", GUIDE.read_text(), flags=re.MULTILINE)[number]


def blocks(language: str, text: str) -> list[str]:
    """Code blocks of a language."""
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def follow(number: int, folder: Path) -> None:
    """Run the shell blocks of a section; each must end as the guide says."""
    found = blocks("sh", section(number))
    assert found
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    for block in found:
        says = re.match(r"# ends with (\d)", block)
        done = ended(
            ["bash", "-euo", "pipefail", "-c", block], cwd=folder, env=os.environ | {"PATH": path}
        )
        said = f"{block}{done.stdout[-3000:]}{done.stderr[-2000:]}"
        assert done.returncode == (int(says[1]) if says else 0), said


def make_the_change(profile: Path) -> None:
    """Change a new profile as the section about it says."""
    [probe] = blocks("yaml", section(3))
    changed = re.sub(
        r"^  probe:\n    env: .*\n", lambda _: probe, profile.read_text(), flags=re.MULTILINE
    )
    assert changed != profile.read_text()
    profile.write_text(changed)
