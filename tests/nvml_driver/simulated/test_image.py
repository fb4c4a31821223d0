"""ci/deploy/Containerfile: the image has what the driver needs. The build itself is a script."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
import tomllib
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from nvml_driver.errors import NvmlUnavailableError
from nvml_driver.simulated import build

ROOT = Path(__file__).resolve().parents[3]
DEPLOY = ROOT / "ci" / "deploy"


def test_the_image_has_what_the_driver_imports_in_the_packages_own_versions() -> None:
    lines = (DEPLOY / "requirements.txt").read_text().splitlines()
    wanted = {line for line in lines if not line.startswith("#")}
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert wanted <= set(project["dependencies"])
    names = {re.split("[<>=]", line)[0] for line in wanted}
    providers = packages_distributions()
    imported = set()
    for path in (ROOT / "nvml_driver").rglob("*.py"):
        if path.name != "generate.py":  # of the gRPC stubs, by developers
            imported |= top_level_imports(path)
    third_party = (
        imported - sys.stdlib_module_names - {"kube", "nvml_driver", "reference_allocator"}
    )
    assert {"grpc", "kubernetes", "pynvml", "yaml"} <= third_party
    # urllib3 comes with kubernetes, which has it in its interface.
    missing = {
        name
        for name in third_party - {"urllib3"}
        if not names & {one.lower().replace("_", "-") for one in providers.get(name, ())}
    }
    assert missing == set()


def test_what_the_driver_takes_from_the_allocator_needs_nothing_that_the_image_lacks() -> None:
    lines = (DEPLOY / "requirements.txt").read_text().splitlines()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    left_out = {re.split("[<>=]", line)[0] for line in project["dependencies"]} - {
        re.split("[<>=]", line)[0] for line in lines
    }
    script = "import sys, nvml_driver.cli, nvml_driver.running; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60
    )
    providers = packages_distributions()
    loaded = {name.partition(".")[0] for name in done.stdout.split()}
    found = {one.lower() for name in loaded for one in providers.get(name, ())}
    # What others of the driver's packages bring along is theirs to install.
    assert found & (left_out - {"rich", "urllib3"}) == set()


def top_level_imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.add(node.module.split(".")[0])
    return found


def test_the_image_copies_all_that_the_wheel_is_built_from() -> None:
    recipe = (DEPLOY / "Containerfile").read_text()
    copied = {
        word.rstrip("/")
        for line in recipe.splitlines()
        if line.startswith("COPY ") and "--from" not in line
        for word in line.split()[1:-1]
    }
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    wheel = project["tool"]["hatch"]["build"]["targets"]["wheel"]
    readme = project["tool"]["hatch"]["metadata"]["hooks"]["fancy-pypi-readme"]
    texts = {fragment["path"] for fragment in readme["fragments"]}
    needed = {*wheel["packages"], *wheel["force-include"], *texts}
    assert needed - copied == set()
    assert all((ROOT / name).exists() for name in copied)


def test_a_library_that_was_compiled_ahead_needs_no_compiler(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ahead = tmp_path / "ahead" / build.LIBRARY
    monkeypatch.setattr(build, "_ahead", lambda sources: ahead)
    assert build.build_ahead() == ahead
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(NvmlUnavailableError, match="needs a C compiler"):
        build.compiler()
    assert build.build(tmp_path / "cache") == ahead
    assert not (tmp_path / "cache").exists()


def test_a_library_of_other_sources_is_not_used() -> None:
    sources = {"nvml.c": b"int main;"}
    assert build._ahead(sources) != build._ahead({"nvml.c": b"int other;"})
