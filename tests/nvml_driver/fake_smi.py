"""Stand-ins for nvidia-smi, which needs a GPU: one as a program that records, one as files.

Neither shows that a real GPU obeys; they show what is asked of it, in which order, and what
happens when it fails.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

from nvml_driver.nvml.installation import DriverRoot
from nvml_driver.prepare.timeslicing import CommandError

_SCRIPT = """#!/bin/sh
echo "$*" >> "{root}/asked"
echo "$LD_PRELOAD" > "{root}/preload"
if [ -f "{root}/sleep" ]; then exec sleep 60; fi
while read -r status words; do
    case "$*" in *"$words"*) echo "said by the stand-in"; exit "$status";; esac
done < "{root}/failing"
exit 0
"""


class RecordingSmi:
    """An installed driver whose only part is a program ``nvidia-smi``."""

    def __init__(self, root: Path) -> None:
        self.folder = root
        tool = root / "usr" / "bin" / "nvidia-smi"
        tool.parent.mkdir(parents=True)
        tool.write_text(_SCRIPT.format(root=root))
        tool.chmod(0o755)
        self.fail()

    @property
    def root(self) -> DriverRoot:
        return DriverRoot(host=Path("/run/nvidia/driver"), container=self.folder)

    def fail(self, *rules: tuple[int, str]) -> None:
        """Exit with a status when the words are in the command line, from now on."""
        text = "".join(f"{status} {words}\n" for status, words in rules)
        (self.folder / "failing").write_text(text)

    def hang(self) -> None:
        (self.folder / "sleep").touch()

    def asked(self) -> list[str]:
        """Command lines since the last call."""
        path = self.folder / "asked"
        lines = path.read_text().splitlines() if path.exists() else []
        path.unlink(missing_ok=True)
        return lines


class FileSmi:
    """What GPUs are set to, as a file that outlives the driver; a reboot deletes it."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def run(self, arguments: Sequence[str], seconds: float) -> None:
        if seconds <= 0:
            raise CommandError("no time", None)
        if arguments[0] != "compute-policy":
            assert list(arguments[2:]) == ["-c", "DEFAULT"]
            return
        _, _, uuid, _, number = arguments
        content = json.dumps({**self.found(), uuid: int(number)})
        scratch = self.path.with_suffix(".new")
        scratch.write_text(content)
        scratch.replace(self.path)

    def found(self) -> dict[str, int]:
        """UUID to interval, of all GPUs that were ever set."""
        if not self.path.exists():
            return {}
        found: dict[str, int] = json.loads(self.path.read_text())
        return found

    def set_now(self) -> dict[str, int]:
        """UUID to interval, of those that are not at the default."""
        return {uuid: number for uuid, number in self.found().items() if number}
