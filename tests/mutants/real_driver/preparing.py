"""Defects of what the driver does with claims."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from nvml_driver.cdi.claim_spec import SpecBuilder
from nvml_driver.config.opaque import settings_for
from nvml_driver.core import DriverCore
from nvml_driver.errors import PrepareError
from nvml_driver.kubelet.service import ClaimWork
from nvml_driver.model.prepared import PreparedDevice
from nvml_driver.prepare import allocation
from nvml_driver.prepare.checkpoint import FILE_NAME, Checkpoint
from nvml_driver.prepare.claim_files import ClaimFiles
from nvml_driver.prepare.preparation import Preparation
from tests.mutants.real_driver.replacement import Json, PutIn, both, instead, with_results

Claim = Mapping[str, Any]
Prepare = Callable[..., list[PreparedDevice]]


def _prepares(change: Callable[[list[str], Json, int], Json]) -> PutIn:
    """Prepare other devices than those of the allocation.

    Args:
        change: names of the node's devices, a result and its place to another result.
    """

    def prepare(original: Prepare, core: DriverCore, claim: Claim, **named: Any) -> Any:
        names = [device.name for device in core.inventory]
        changed = with_results(claim, lambda result, place: change(names, result, place))
        return original(core, changed, **named)

    return instead(DriverCore.prepare, prepare)


def _answers(change: Callable[[list[PreparedDevice]], list[PreparedDevice]]) -> PutIn:
    """Prepare as it should be, and say something else."""

    def prepare(original: Prepare, core: DriverCore, claim: Claim, **named: Any) -> Any:
        return change(original(core, claim, **named))

    return instead(DriverCore.prepare, prepare)


def _beside(names: list[str], result: Json, _place: int) -> Json:
    following = names[(names.index(result["device"]) + 1) % len(names)]
    return {**result, "device": following}


def _cut(original: Prepare, core: DriverCore, claim: Claim, **named: Any) -> Any:
    devices = claim["status"]["allocation"]["devices"]
    first = {**devices, "results": list(devices.get("results") or [])[:1]}
    cut_allocation = {**claim["status"]["allocation"], "devices": first}
    return original(core, {**claim, "status": {"allocation": cut_allocation}}, **named)


def _rotated(devices: list[PreparedDevice]) -> list[PreparedDevice]:
    ids = [device.cdi_device_ids for device in devices]
    others = [*ids[1:], *ids[:1]]
    return [replace(d, cdi_device_ids=o) for d, o in zip(devices, others, strict=True)]


def _unprepare_nothing(
    _original: Any, _work: ClaimWork, references: Iterable[Any]
) -> Iterator[tuple[str, str]]:
    return ((reference.uid, "") for reference in references)


def _unprepare_silently(
    original: Callable[..., Iterator[tuple[str, str]]], work: ClaimWork, references: Any
) -> Iterator[tuple[str, str]]:
    list(original(work, references))
    return iter(())


def _once() -> Callable[..., Any]:
    seen: set[str] = set()

    def prepare(original: Prepare, core: DriverCore, claim: Claim, **named: Any) -> Any:
        uid = claim["metadata"]["uid"]
        if uid in seen:
            raise PrepareError(f"claim {uid} was prepared before")
        seen.add(uid)
        return original(core, claim, **named)

    return prepare


def _again(devices: Callable[[DriverCore, Claim], Claim]) -> PutIn:
    """Do something else where a claim is prepared already."""

    def prepare(original: Prepare, core: DriverCore, claim: Claim, **named: Any) -> Any:
        if claim["metadata"]["uid"] in core.list_prepared():
            claim = devices(core, claim)
        return original(core, claim, **named)

    return instead(DriverCore.prepare, prepare)


def _refused(_core: DriverCore, claim: Claim) -> Claim:
    raise PrepareError(f"claim {claim['metadata']['uid']} is prepared already")


def _others(core: DriverCore, claim: Claim) -> Claim:
    names = [device.name for device in core.inventory]
    return with_results(claim, lambda result, place: _beside(names, result, place))


def _refuse_unknown(original: Callable[..., None], core: DriverCore, uid: str) -> None:
    if uid not in core.list_prepared():
        raise PrepareError(f"claim {uid} is not prepared")
    original(core, uid)


def _forget(original: Callable[..., None], checkpoint: Checkpoint, state: Path, **n: Any) -> None:
    (state / FILE_NAME).unlink(missing_ok=True)
    original(checkpoint, state, **n)


def ignores_configuration(source: str | None) -> PutIn:
    """Apply no opaque configuration of a source (None: of any)."""

    def without_source(
        original: Callable[..., Any], driver: str, configs: Any, *others: Any, **named: Any
    ) -> Any:
        kept = [one for one in configs if source is not None and one.get("source") != source]
        return original(driver, kept, *others, **named)

    return instead(settings_for, without_source, at=allocation)


def _without_files(original: Callable[..., Json], *args: Any) -> Json:
    found = original(*args)
    return {**found, "containerEdits": {**found["containerEdits"], "deviceNodes": []}}


def _without_permission(original: Callable[..., Json], *args: Any) -> Json:
    return {**original(*args), "permissions": "m"}


never_unprepares = instead(ClaimWork.unprepare_each, _unprepare_nothing)
looks_at_no_other_claim = instead(Preparation._refuse_overlap, lambda *_: None)
first_device = _prepares(lambda names, result, place: {**result, "device": names[place]})
neighbour = _prepares(_beside)
only_first = instead(DriverCore.prepare, _cut)
swapped_requests = _answers(_rotated)
no_requests = _answers(lambda devices: [replace(one, request_names=()) for one in devices])
prepared_only_once = instead(DriverCore.prepare, _once())
answers_without_claim = instead(
    ClaimWork.prepare_each, lambda original, *args, **named: [*original(*args, **named)][:0]
)
other_uid = instead(
    ClaimWork.prepare_each,
    lambda original, *args, **named: [
        (uid[::-1], devices, error) for uid, devices, error in original(*args, **named)
    ],
)
unprepares_without_answer = instead(ClaimWork.unprepare_each, _unprepare_silently)
leaves_cdi_specs = both(
    instead(ClaimFiles.remove, lambda *_: None),
    instead(ClaimFiles.remove_orphans, lambda *_: None),
)
refuses_prepared = _again(_refused)
others_when_asked_again = _again(_others)
refuses_unknown = instead(DriverCore.unprepare, _refuse_unknown)
loses_checkpoint = instead(Checkpoint.__init__, _forget)
no_device_files = instead(SpecBuilder._describe_device, _without_files)
files_without_permission = instead(SpecBuilder._describe_node, _without_permission)
