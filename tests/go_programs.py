"""Programs of others, built from the modules below ci/clients that pin them."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Final

from localkube.gocommand import COMPILE, find_go, make_environment

KUBERNETES: Final = "1.37.1"
KUBECTL: Final = "./kubectl"
_CLIENTS: Final = Path("ci/clients").absolute()
_VERSION: Final = f"-ldflags=-X k8s.io/component-base/version.gitVersion=v{KUBERNETES}"


def build_programs(folder: Path, *packages: str) -> Path:
    """Build clients of Kubernetes, of packages of ci/clients/go, into a folder; return it."""
    _run_go("go", "build", _VERSION, "-o", f"{folder}/", *packages)
    return folder


def build_helm(folder: Path) -> None:
    """Build Helm into a folder."""
    _run_go("helm", "build", "-o", f"{folder}/", "helm.sh/helm/v4/cmd/helm")


def build_tests(file: Path, package: str) -> None:
    """Build the program of the tests of a package of ci/clients/go."""
    _run_go("go", "test", "-c", "-o", str(file), package)


def _run_go(module: str, command: str, *arguments: str) -> None:
    whole = [find_go(), command, *COMPILE, *arguments]
    subprocess.run(whole, cwd=_CLIENTS / module, env=make_environment(), check=True)
