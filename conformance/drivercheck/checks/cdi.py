"""CDI: the ids that prepare answers with are devices that a container runtime finds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from conformance.drivercheck.bench import Bench
from conformance.drivercheck.check import Section
from conformance.drivercheck.checks.prepare import every_claim
from conformance.drivercheck.kubelet import Device
from conformance.drivercheck.process import path_outside
from conformance.drivercheck.violations import NotOfferedError, UnanswerableError, ViolationError
from kube.base.text import one_line
from kube.cdi import reading as cdi
from kube.cdi.spec import is_id
from kube.cdi.versions import list_refusals

section = Section("cdi")

_SPEC = "github.com/cncf-tags/container-device-interface, SPEC.md"
_HELPER = "k8s.io/dynamic-resource-allocation/kubeletplugin/draplugin.go"
_IDS = f"{_HELPER}, Device.CDIDeviceIDs"
_USUAL = (Path("/etc/cdi"), Path("/var/run/cdi"))
"""Where container runtimes look by default."""


def ids_of(answer: list[tuple[Device, ...]]) -> set[str]:
    """Return the CDI ids of an answer. Raises NotOfferedError: there are none, which is allowed."""
    ids = {name for devices in answer for device in devices for name in device.cdi_ids}
    if not ids:
        raise NotOfferedError("the driver's devices have no CDI ids")
    return ids


def find_unresolved(bench: Bench, ids: set[str]) -> list[str]:
    """Return those ids that no valid spec in the folders defines."""
    return sorted(ids - cdi.device_ids(bench.driver.cdi_folders).keys())


def expect_resolved(bench: Bench, ids: set[str]) -> None:
    """Raise ViolationError if no valid spec defines one of the ids."""
    if missing := find_unresolved(bench, ids):
        folders = ", ".join(map(str, bench.driver.cdi_folders))
        raise ViolationError(
            f"expected specs in {folders} to define each CDI id; found none for "
            f"{one_line(', '.join(missing), 200)}; {_suggest_cdi_dir(missing)}"
        )


def expect_gone(bench: Bench, between: Callable[[], object] = lambda: None) -> None:
    """Prepare a claim, call ``between``, unprepare it; raise ViolationError if CDI devices stay."""
    ids_before = cdi.device_ids(bench.driver.cdi_folders).keys()
    claim = bench.allocated_claim()
    new_ids = ids_of(bench.prepare(claim)) - ids_before
    between()
    bench.unprepare(claim)
    if remaining := new_ids & cdi.device_ids(bench.driver.cdi_folders).keys():
        raise ViolationError(
            f"expected no spec for {one_line(', '.join(remaining), 200)}; found one"
        )


def _suggest_cdi_dir(missing: list[str]) -> str:
    """Return how to tell this check of the folder where the specs are."""
    for folder in _USUAL:
        if cdi.device_ids([folder]).keys() & set(missing):
            return f"{folder} has it: give --cdi-dir {folder}"
    return "for a driver that ignores CDI_ROOT give --cdi-dir FOLDER"


@section.required(f"{_IDS}; {_SPEC}")
def ids_are_qualified_names(bench: Bench) -> None:
    """Each CDI id is vendor/class=name."""
    for name in ids_of(bench.prepare(bench.allocated_claim())):
        if not is_id(name):
            raise ViolationError(f"expected vendor/class=name; found {one_line(name, 100)!r}")


@section.required(f"{_IDS}; {_SPEC}")
def ids_resolve(bench: Bench) -> None:
    """When prepare has answered, a runtime finds each CDI id in its folders."""
    claims = every_claim(bench, most=8)
    expect_resolved(bench, ids_of(bench.prepare(*claims)))


@section.required(_SPEC)
def specs_are_valid(bench: Bench) -> str | None:
    """Every spec file of the CDI folders is valid, and no two of a folder define one device."""
    ids_of(bench.prepare(*every_claim(bench, most=8)))
    found = cdi.read_folders(bench.driver.cdi_folders)
    if wrong := found.list_messages():
        raise ViolationError(f"expected valid specs; found {one_line('; '.join(wrong), 400)}")
    refusals = [
        f"{file.name}: {refusal}"
        for file, spec in found.specs.items()
        for refusal in list_refusals(spec)
    ]
    return one_line("; ".join(refusals), 400) if refusals else None


@section.recommended("container-device-interface/pkg/cdi/container-edits_unix.go, fillInfo; runc")
def paths_are_on_the_node(bench: Bench) -> None:
    """What specs mount from the node is there, and so are device files without type and numbers."""
    ids = ids_of(bench.prepare(*every_claim(bench, most=8)))
    paths = sorted(cdi.node_paths(bench.driver.cdi_folders, ids))
    if missing := [
        path for path in paths if not Path(path_outside(path, bench.driver.folder)).exists()
    ]:
        raise ViolationError(
            f"expected all that specs name on this machine; found no {', '.join(missing[:5])[:300]}"
        )


@section.required(
    f"{_HELPER}: idempotent; specs are lost with /var/run (kubernetes#141433)", starts_driver=True
)
def lost_spec_is_written_again(bench: Bench) -> None:
    """To prepare again a claim whose spec was lost in a reboot gives ids that resolve."""
    claim = bench.allocated_claim()
    first_ids = ids_of(bench.prepare(claim))
    sees_new_boot = bench.driver.reboot()
    try:
        ids = ids_of(bench.prepare(claim))
        if find_unresolved(bench, first_ids | ids) and not sees_new_boot:
            raise UnanswerableError("its specs were lost; only root can show it another boot id")
        expect_resolved(bench, ids)
    finally:
        bench.driver.renew()


@section.required(f"{_HELPER}, UnprepareResourceClaims: must undo whatever prepare did")
def gone_after_unprepare(bench: Bench) -> None:
    """A CDI device that prepare defined is not defined any more after unprepare."""
    expect_gone(bench)


@section.required(f"{_HELPER}: each claim is its own")
def other_claims_keep_theirs(bench: Bench) -> None:
    """To unprepare one claim leaves the CDI devices of another."""
    gone, stays = bench.allocated_claim(), bench.allocated_claim()
    bench.prepare(gone)
    ids = ids_of(bench.prepare(stays))
    bench.unprepare(gone)
    expect_resolved(bench, ids)


@section.required("kubernetes/test/e2e/dra/dra.go: no double use; claiminfo.go")
def devices_have_ids_of_their_own(bench: Bench) -> None:
    """Two devices of one claim, for different requests, have different CDI ids."""
    claim = bench.allocated_claim({"name": "one", "exactly": {}}, {"name": "two", "exactly": {}})
    [devices] = bench.prepare(claim)
    ids_of([devices])
    ids_by_device = {(device.pool, device.name): set(device.cdi_ids) for device in devices}
    first = next(iter(ids_by_device.values()))
    if len(ids_by_device) > 1 and all(ids == first for ids in ids_by_device.values()):
        raise ViolationError(f"expected other ids for each; found {sorted(first)} for both")


@section.recommended(f"{_HELPER}, PrepareResourceClaims: the unique name should not be reused")
def ids_are_not_used_again(bench: Bench) -> None:
    """An id means the same for every claim, because runtimes may cache it; else it is a new one."""
    first = bench.allocated_claim()
    ids = ids_of(bench.prepare(first))
    specs_before = cdi.device_ids(bench.driver.cdi_folders)
    bench.unprepare(first)
    second = bench.allocate(bench.pending_claim(), first["status"]["allocation"])
    reused = ids & ids_of(bench.prepare(second))
    specs_now = cdi.device_ids(bench.driver.cdi_folders)
    changed = sorted(
        name
        for name in reused
        if not specs_before.get(name) or specs_before[name] != specs_now.get(name)
    )
    if changed:
        raise ViolationError(
            f"expected new ids; found {one_line(', '.join(changed), 200)} with other content"
        )


@section.recommended(_SPEC)
def no_scraps(bench: Bench) -> None:
    """Nothing but specs lies in the CDI folder once prepare and unprepare have answered."""
    claim = bench.allocated_claim()
    ids_of(bench.prepare(claim))
    bench.unprepare(claim)
    scraps = [
        file.name
        for file in bench.driver.cdi_root.iterdir()
        if file.suffix not in (".json", ".yaml") and not file.is_dir()
    ]
    if scraps:
        raise ViolationError(f"expected no other files; found {', '.join(scraps[:5])}")
