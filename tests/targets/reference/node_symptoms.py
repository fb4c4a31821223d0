"""How faults of the kubelet and of the driver show.

Each function says whether the symptom of the fault of its name is there.
"""

from __future__ import annotations

from collections.abc import Callable

from conformance.targets.reference.scope import ReferenceScope
from tests.mutants.faults import Fault
from tests.targets.reference import kit
from tests.targets.reference.situations import after_deletion, run


def first_container_only(scope: ReferenceScope) -> bool:
    scope.create(kit.claim("c"))
    containers = [kit.container("ctr0", "g"), kit.container("ctr1", "g")]
    scope.create(kit.pod("p", *containers, claims={"g": "c"}))
    kit.runs(scope, "p")
    return bool(kit.seen(scope, "p", "ctr0")) and not kit.seen(scope, "p", "ctr1")


def leak_cdi(scope: ReferenceScope) -> bool:
    after_deletion(scope)
    return bool(scope.cdi_claims())


def leaks_to_other_pods(scope: ReferenceScope) -> bool:
    run(scope, kit.claim("c"))
    scope.create(kit.pod("p"))
    kit.runs(scope, "p")
    return bool(kit.seen(scope, "p"))


def request_filter_ignored(scope: ReferenceScope) -> bool:
    scope.create(kit.claim("c", kit.request("one"), kit.request("two")))
    container = kit.container("ctr0", {"name": "g", "request": "one"})
    scope.create(kit.pod("p", container, claims={"g": "c"}))
    kit.runs(scope, "p")
    return len(kit.seen(scope, "p")) == 2


def sees_all_claims(scope: ReferenceScope) -> bool:
    scope.create(kit.claim("c"))
    scope.create(kit.pod("p", kit.container(), claims={"g": "c"}))
    kit.runs(scope, "p")
    return bool(kit.seen(scope, "p"))


def wrong_device_in_container(scope: ReferenceScope) -> bool:
    [device] = kit.devices(run(scope, kit.claim("c")))
    return kit.seen(scope, "c") != [f"/dev/nvidia{device.removeprefix('gpu-')}"]


SYMPTOMS: dict[Fault, Callable[[ReferenceScope], bool]] = {
    Fault.FIRST_CONTAINER_ONLY: first_container_only,
    Fault.LEAK_CDI: leak_cdi,
    Fault.LEAKS_TO_OTHER_PODS: leaks_to_other_pods,
    Fault.REQUEST_FILTER_IGNORED: request_filter_ignored,
    Fault.SEES_ALL_CLAIMS: sees_all_claims,
    Fault.WRONG_DEVICE_IN_CONTAINER: wrong_device_in_container,
}
