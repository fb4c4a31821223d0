"""Which scenarios are found and which fit; and what is said where none does."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from conformance.data import scenarios_dir
from conformance.scenario.documents.yamlfile import yaml_files
from conformance.scenario.selection import Selection, select
from kube.base.errors import UsageError
from reference_allocator.gates import LATEST, MINORS
from tests.scenario.test_loader import SCENARIO

PROFILE = (scenarios_dir() / "drivers/gpu.example.com.yaml").read_text()


@pytest.fixture
def vendor(tmp_path: Path) -> Path:
    """Scenarios as a vendor keeps them: profile and manifests beside them."""
    for name in ("shared/given.yaml", "exclusive/given.yaml"):
        file = tmp_path / "suite" / name
        file.parent.mkdir(parents=True)
        file.write_text(SCENARIO)
    (tmp_path / "suite/profile.yaml").write_text(PROFILE)
    (tmp_path / "suite/pod.yml").write_text("apiVersion: v1\nkind: Pod\n")
    (tmp_path / "suite/.hidden").mkdir()
    (tmp_path / "suite/.hidden/x.yaml").write_text("a: [")
    return tmp_path / "suite"


def test_a_file_that_is_given_twice_runs_once(vendor: Path) -> None:
    assert len(select([vendor, vendor / "shared", vendor / "shared/given.yaml"])) == 2


def test_ids_that_collide_are_refused(vendor: Path) -> None:
    with pytest.raises(UsageError, match=r"id 'given' is used by .*exclusive/given.yaml too"):
        select([vendor / "exclusive", vendor / "shared"])


def test_a_folder_without_scenarios_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=f"no scenario .YAML. below {tmp_path}"):
        select([tmp_path])


def test_a_folder_that_cannot_be_read_is_an_error(
    vendor: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Leaving it out would check less than what was asked for, and still be green."""
    scandir = os.scandir

    def refusing(path: Any) -> Iterator[os.DirEntry[str]]:
        if Path(path).name == "shared":
            raise PermissionError(13, "Permission denied", str(path))
        return scandir(path)

    monkeypatch.setattr(os, "scandir", refusing)
    with pytest.raises(UsageError, match="suite/shared: cannot be read: Permission denied"):
        select([vendor])


def test_files_can_be_excluded_by_path_and_by_name(vendor: Path) -> None:
    found = yaml_files(vendor, exclude=["shared/*", "*.yml"])
    assert [file.relative_to(vendor).as_posix() for file in found] == [
        "exclusive/given.yaml",
        "profile.yaml",
    ]


@pytest.mark.parametrize(
    ("pattern", "number"),
    [("exact-count", 1), ("cleanup*", 5), ("core/cleanup*", 4), ("extended/*/refused*", 1)],
)
def test_a_pattern_fits_a_part_or_as_a_glob_the_whole_id_or_its_last_part(
    pattern: str, number: int
) -> None:
    found = select((), Selection(only=(pattern,)))
    assert len(found) >= number
    assert all(pattern.strip("*").rpartition("*")[2].strip("/") in item.id for item in found)


def test_features_are_found_in_any_case() -> None:
    found = select((), Selection(feature=("devicetaints",)))
    assert {item.scenario.spec.feature for item in found} == {"DeviceTaints"}


def test_scenarios_are_found_by_gate_enhancement_and_minor() -> None:
    by_gate = {item.id for item in select((), Selection(gate=("dradevicetaints",)))}
    of_feature = {item.id for item in select((), Selection(feature=("DeviceTaints",)))}
    assert of_feature < by_gate  # and those of other features that need the gate
    by_kep = select((), Selection(kep=(4816,)))
    found = {item.scenario.spec.feature for item in by_kep}
    assert found == {"PrioritizedList", "SchedulerScoring"}
    released = MINORS[: MINORS.index(LATEST) + 1]
    dealt = [{item.id for item in select((), Selection(since=(minor,)))} for minor in released]
    assert set().union(*dealt) == {item.id for item in select()}
    assert sum(map(len, dealt)) == len(select())


def test_what_is_excluded_is_left_out() -> None:
    rest = {item.id for item in select((), Selection(exclude=("core/*", "regressions")))}
    assert rest == {item.id for item in select() if item.id.startswith("extended/")}


@pytest.mark.parametrize(
    ("selection", "says"),
    [
        (Selection(only=("nope",)), "no scenario with an id that matches -k nope below"),
        (
            Selection(tier=("device",), level=("core",), feature=("AllocationModeAll",)),
            r"all filters: \d+ in all, [1-9]\d* with --tier device, 0 with --level core; `dra-conf",
        ),
        (
            Selection(level=("extended",), feature=("Isolation",)),
            r"\d+ with --level extended, 0 with --feature Isolation",
        ),
        (Selection(feature=("Derived",)), "did you mean DerivedAttributes"),
        (Selection(feature=("DeviceTaint",)), "did you mean DeviceTaints"),
    ],
)
def test_the_filter_that_leaves_nothing_is_said(selection: Selection, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        select((), selection)


def test_without_faults_nothing_is_stopped_and_no_second_driver_started() -> None:
    calm, every = select((), Selection(no_faults=True)), select(())
    left = {item.id for item in every} - {item.id for item in calm}
    assert "extended/device-preparation/driver-restart-keeps-claims" in left
    assert "extended/several-drivers/claims-of-two-drivers" in left
    assert all(
        any(step.fault for step in item.scenario.spec.steps)
        or item.scenario.spec.requires.other_devices
        for item in every
        if item.id in left
    )
    assert not any(step.fault for item in calm for step in item.scenario.spec.steps)


def test_where_only_faults_were_asked_for_none_is_left() -> None:
    wanted = Selection(only=("driver-restart-keeps-claims",), no_faults=True)
    with pytest.raises(UsageError, match=r"1 in all, 0 with --no-faults"):
        select((), wanted)
