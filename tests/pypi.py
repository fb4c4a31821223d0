"""Packages of PyPI that tests run beside this environment."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from kube.base.locks import file_lock

PACKAGES = Path("build/clients").absolute()


def install_packages(requirements: str) -> Path:
    """Return a folder with packages of PyPI and what they need, apart from this environment's."""
    folder = PACKAGES / requirements.replace(" ", ",")
    PACKAGES.mkdir(parents=True, exist_ok=True)
    with file_lock(PACKAGES / f".{folder.name}.lock"):
        if not (folder / ".ready").exists():
            pip = ("-m", "pip", "install", "--quiet", "--upgrade", "--no-warn-conflicts")
            install = (sys.executable, *pip, "--target", str(folder), *requirements.split())
            subprocess.run(install, check=True)
            (folder / ".ready").touch()
    return folder
