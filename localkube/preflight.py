"""What a node needs from this machine, checked before anything is started.

Everything that is missing is said at once, because being told one thing per attempt is what makes
such a set-up tedious.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

from localkube.base import ClusterUsageError
from localkube.processes.tools import locate_tool, search_path

_PROGRAMS = ("env", "mount", "nsenter", "sleep", "umount", "unshare")
"""Of coreutils and util-linux, which the base system of every Linux distribution has."""


def _namespace_problem() -> str:
    """Empty where namespaces can be made, else why not."""
    unshare = locate_tool("unshare")
    if unshare is None:
        return ""  # already said as a missing program
    command = [unshare, "--net", "--mount", "--pid", "--fork", "--mount-proc", "sleep", "0"]
    completed = subprocess.run(
        command,
        env={"PATH": search_path()},
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    return "" if completed.returncode == 0 else completed.stderr.strip()


def check_platform() -> None:
    """Refuse an operating system that has none of what is used here. Raises ClusterUsageError."""
    if sys.platform != "linux":
        raise ClusterUsageError(
            f"a local cluster needs Linux, this is {sys.platform}; use --cluster kubeconfig "
            "or --cluster kind"
        )


def missing_for_nodes() -> list[str]:
    """Return a line for each thing that a node needs and this machine lacks; empty: none."""
    lines = []
    root = os.geteuid() == 0
    if not root:
        lines.append("root: namespaces, mounts and containers need it (run with sudo)")
    programs = [name for name in _PROGRAMS if locate_tool(name) is None]
    if programs:
        lines.append(f"of coreutils and util-linux: {', '.join(programs)}")
    if root:
        problem = _namespace_problem()
        if problem:
            lines.append(
                f"the right to make namespaces ({problem}); a container needs --privileged"
            )
    return lines


def check_nodes() -> None:
    """Refuse to start nodes where something is missing. Raises ClusterUsageError."""
    missing = missing_for_nodes()
    if missing:
        raise ClusterUsageError(
            "a node of a local cluster cannot run here; missing:\n"
            + "\n".join(f"  - {line}" for line in missing)
            + "\nThe control plane alone (0 nodes) needs none of these."
        )


def check_feature_gates(apiserver: Path, gates: Mapping[str, bool]) -> None:
    """Refuse feature gates with which no component would start, before one is started.

    ``kube-apiserver --version`` reads its flags first: unknown gates, locked ones and those that
    depend on a disabled one end it.
    Raises ClusterUsageError: says what kube-apiserver says.
    """
    if not gates:
        return
    values = ",".join(f"{name}={str(on).lower()}" for name, on in sorted(gates.items()))
    completed = subprocess.run(
        [str(apiserver), f"--feature-gates={values}", "--version"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    if completed.returncode == 0:
        return
    errors = re.findall(r'"command failed" err="(.*)"', completed.stderr)
    raise ClusterUsageError(
        f"--feature-gate: kube-apiserver does not start with {values}: "
        f"{errors[-1] if errors else completed.stderr.strip()[-300:]}"
    )
