"""The wheel alone is enough: installed into an empty environment, away from any checkout."""

from __future__ import annotations

import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from tests.programs import ended
from tests.scenario.shipped import shipped

ROOT = Path(__file__).resolve().parents[2]


def call(*command: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    done = ended([str(part) for part in command], cwd=cwd)
    assert done.returncode == 0, done.stdout + done.stderr
    return done


@pytest.fixture(scope="module")
def environment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, with the packages that it declares and those that they declare: no others."""
    folder = tmp_path_factory.mktemp("wheel")
    build = (sys.executable, "-m", "build", "--wheel", "--no-isolation")
    call(*build, "--outdir", folder, ROOT, cwd=folder)
    [wheel] = folder.glob("*.whl")
    call(sys.executable, "-m", "venv", "--without-pip", folder / "venv", cwd=folder)
    python = folder / "venv/bin/python"
    pip = (sys.executable, "-m", "pip")
    call(*pip, "--python", python, "install", "--quiet", "--no-deps", wheel, cwd=folder)
    [site] = (folder / "venv").glob("lib/python3*/site-packages")
    for name in declared("dra-conformance") - {"dra-conformance", "pip", "setuptools"}:
        for path in files_of(name):
            if not (site / path.name).exists():
                (site / path.name).symlink_to(path)
    return folder / "venv"


def declared(name: str) -> set[str]:
    """The packages that one needs, with their own needs; as pip would install them here."""
    found: set[str] = set()
    waiting = [name]
    while waiting:
        name = canonicalize_name(waiting.pop())
        if name not in found:
            found.add(name)
            for text in metadata.requires(name) or ():
                wanted = Requirement(text)
                if wanted.marker is None or wanted.marker.evaluate({"extra": ""}):
                    waiting.append(wanted.name)
    return found


def files_of(name: str) -> set[Path]:
    """What a package has in the site-packages folder, top level only."""
    package = metadata.distribution(name)
    tops = {file.parts[0] for file in package.files or () if file.parts[0] not in {"..", "bin"}}
    return {Path(str(package.locate_file(top))) for top in tops - {"__pycache__"}}


@pytest.mark.slow
def test_the_installed_wheel_has_and_runs_shipped_scenarios(
    environment: Path, tmp_path: Path
) -> None:
    command = environment / "bin/dra-conformance"
    listed = call(command, "list", cwd=tmp_path).stdout
    assert f"{len(shipped())} scenarios below" in listed
    done = call(command, "run", "-k", "regressions/", "-o", "out", cwd=tmp_path)
    assert "conformant (exit code 0)" in done.stdout
    assert (tmp_path / "out/junit.xml").is_file()
    assert (tmp_path / "out/results.ndjson").is_file()


@pytest.mark.slow
def test_the_installed_wheel_has_the_other_commands(environment: Path, tmp_path: Path) -> None:
    assert "Scenario" in call(environment / "bin/dra-conformance", "schema", cwd=tmp_path).stdout
    slices = call(environment / "bin/nvml-dra-driver", "slices", "--simulate", "t4x4", cwd=tmp_path)
    assert "Tesla T4" in slices.stdout


@pytest.mark.slow
def test_every_link_of_the_readme_leads_somewhere_from_a_package_index(environment: Path) -> None:
    [found] = (environment.parent).glob("venv/lib/python3*/site-packages/dra_conf*/METADATA")
    text = found.read_text()
    links = re.findall(r"\]\(([^)]+)\)", text)
    assert links
    assert [link for link in links if not link.startswith(("https://", "#"))] == []
    assert "Project-URL: Repository, https://" in text
    assert "License-File: LICENSE" in text
