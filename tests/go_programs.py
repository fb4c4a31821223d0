"""Programs of others, built from the modules that ci/clients/go pins."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from localkube.gocommand import COMPILE, find_go, make_environment

MODULE: Final = Path("ci/clients/go").absolute()
KUBERNETES: Final = "1.37.1"
HELM: Final = "helm.sh/helm/v4/cmd/helm"
KUBECTL: Final = "./kubectl"
_VERSION: Final = f"-ldflags=-X k8s.io/component-base/version.gitVersion=v{KUBERNETES}"


def build_programs(folder: Path, *packages: str) -> Path:
    """Build programs of packages into a folder; return it."""
    _run_go("build", _VERSION, "-o", f"{folder}/", *packages)
    return folder


def build_tests(file: Path, package: str) -> None:
    """Build the program of a package's tests."""
    _run_go("test", "-c", "-o", str(file), package)


def _run_go(command: str, *arguments: str) -> None:
    subprocess.run(
        [find_go(), command, *COMPILE, *arguments], cwd=MODULE, env=make_environment(), check=True
    )
