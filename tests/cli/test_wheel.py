"""The wheel alone is enough: installed into an empty environment, away from any checkout."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]


def call(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    call(sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT, cwd=folder)
    [wheel] = folder.glob("*.whl")
    call(sys.executable, "-m", "venv", folder / "venv", cwd=folder)
    python = folder / "venv/bin/python"
    call(python, "-m", "pip", "install", "--quiet", wheel, cwd=folder)
    return folder / "venv"


@pytest.mark.slow
def test_the_installed_wheel_runs_every_shipped_scenario(environment: Path, tmp_path: Path) -> None:
    done = call(
        *(environment / "bin/dra-conformance", "run", "-o", "out"),
        *("--feature-gate", "DRANodeAllocatableResources=true"),  # alpha; else two are skipped
        cwd=tmp_path,
    )
    shipped = len(list((ROOT / "scenarios").glob("core/**/*.yaml"))) + len(
        list((ROOT / "scenarios").glob("extended/**/*.yaml"))
    )
    assert f"{shipped} passed" in done.stdout
    assert (tmp_path / "out/junit.xml").is_file()
    assert (tmp_path / "out/results.ndjson").is_file()


@pytest.mark.slow
def test_the_installed_wheel_has_the_other_commands(environment: Path, tmp_path: Path) -> None:
    assert "Scenario" in call(environment / "bin/dra-conformance", "schema", cwd=tmp_path).stdout
    slices = call(environment / "bin/nvml-dra-driver", "slices", "--simulate", "t4x4", cwd=tmp_path)
    assert "Tesla T4" in slices.stdout
