"""What pytest-xdist's workers make can be found by the run that the controller names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from tests.plugin.conftest import Session

SCENARIO = """\
apiVersion: dra-conformance/v1
kind: Scenario
metadata: {name: labels}
spec:
  summary: A claim carries the label of the run that made it.
  level: core
  feature: ResourceClaim
  tier: allocation
  references: [https://kep.k8s.io/4381]
  steps:
  - apply:
    - apiVersion: resource.k8s.io/v1
      kind: ResourceClaim
      metadata: {name: claim}
      spec: {devices: {requests: [{name: r, exactly: {deviceClassName: none}}]}}
  - expect:
    - object: {kind: ResourceClaim, name: claim}
      cel: >-
        object.metadata.labels["dra-conformance.dev/run"].matches("^[0-9a-f]{8}$") &&
        object.metadata.labels["dra-conformance.dev/worker"] == "gw0"
      eventually: 1s
"""


def test_all_workers_use_the_label_of_the_run(session: Session, tmp_path: Path) -> None:
    (tmp_path / "labels.yaml").write_text(SCENARIO)
    done = session("-q", "-n", "1", "--dra-target", "reference", "labels.yaml")
    assert done.code == 0, done.out
    assert "1 passed" in done.out


def test_scenarios_run_without_xdist_where_markers_are_strict(
    session: Session, tmp_path: Path
) -> None:
    scenario = SCENARIO.replace('["dra-conformance.dev/worker"] == "gw0"', ".size() > 0")
    (tmp_path / "labels.yaml").write_text(scenario)
    options = ("-q", "-p", "no:xdist", "--strict-markers", "--dra-target", "reference")
    done = session(*options, "labels.yaml")
    assert done.code == 0, done.out
    assert "1 passed" in done.out


def test_the_plugin_imports_next_to_nothing_where_it_is_not_asked_for() -> None:
    heavy = {"pydantic", "kubernetes", "grpc", "jinja2", "lark", "pynvml", "rich", "typer", "yaml"}
    code = "import sys, pytest; before = set(sys.modules); import conformance.plugin\n"
    code += f"print(sorted({heavy!r} & (set(sys.modules) - before)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


def test_scenarios_on_the_reference_load_no_client_and_no_report() -> None:
    """Each worker of pytest-xdist loads what the plugin does, so that this counts many times."""
    heavy = {
        *("kubernetes", "urllib3", "ssl", "grpc", "cryptography", "filelock", "allure_commons"),
        *("attr", "jinja2", "lark", "pynvml", "rich", "typer", "jsonschema", "asyncio"),
    }
    code = "import sys, pytest; before = set(sys.modules); import conformance.plugin.scenarios\n"
    code += f"print(sorted({heavy!r} & (set(sys.modules) - before)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.strip() == "[]"


def test_to_ask_for_the_version_loads_no_command() -> None:
    heavy = {"pydantic", "kubernetes", "grpc", "jinja2", "lark", "rich", "yaml"}
    code = "import sys\nsys.argv = ['dra-conformance', '--version']\n"
    code += "from conformance.cli import main\ntry: main()\nexcept SystemExit: pass\n"
    code += f"print(sorted({heavy!r} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stdout.splitlines()[-1] == "[]"
