"""Without a C compiler there are no simulated GPUs, and what needs none still runs."""

from __future__ import annotations

import importlib.util
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from conformance.engine.setup import Setup
from conformance.engine.suite import run_suite
from conformance.results.events.scenario import Outcome
from conformance.targets.opening.options import DEFAULT_VERSION, TargetOptions
from conformance.targets.opening.target import open_reference
from kube.base.errors import UsageError
from reference_allocator.gates import gates_for_version
from tests.scenario.sampling import sample
from tests.scenario.shipped import on_reference


@pytest.fixture(autouse=True)
def no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    find = importlib.util.find_spec

    def others(name: str) -> ModuleSpec | None:
        return None if name == "ziglang" else find(name)

    monkeypatch.setattr("importlib.util.find_spec", others)


def test_scenarios_without_devices_run_and_the_others_say_what_to_install() -> None:
    said = list[str]()
    scenarios = sample(on_reference(), 40, "without devices")
    known = gates_for_version(DEFAULT_VERSION).items()
    options = TargetOptions(feature_gates={name: True for name, gate in known if not gate.locked})
    with open_reference(options, progress=said.append) as opened:
        found = run_suite(scenarios, Setup("t", opened), ()).finished
    assert "dra-conformance[compiler]" in said[0]
    assert "--simulate" not in said[0]
    for item in found:
        if item.scenario.tier == "allocation":
            assert item.outcome is Outcome.PASSED, item.message
        else:
            assert item.outcome is Outcome.SKIPPED
            assert "pip install 'dra-conformance[compiler]'" in item.message


@pytest.mark.parametrize(
    "options", [TargetOptions(simulate="t4x4"), TargetOptions(dynamic_mig=True)]
)
def test_gpus_that_were_asked_for_are_not_left_out(options: TargetOptions) -> None:
    with pytest.raises(UsageError, match="compiler"), open_reference(options):
        pass


def test_a_comparison_is_not_made_without_devices() -> None:
    with pytest.raises(UsageError, match="compiler"), open_reference(TargetOptions(), []):
        pass
