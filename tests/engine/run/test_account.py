"""What is kept of all that is said of a scenario's pods and claims."""

from __future__ import annotations

import pytest

from conformance.engine.run.account import AccountKeeper
from conformance.targets.reference import ReferenceTarget
from kube.values import Obj, Request
from tests.kubesim import kit
from tests.kubesim.conftest import new_scope

IN_A_CONTAINER = "container ctr0: claim:gpu: k8s.gpu.nvidia.com/claim=<uid>-<device>: Healthy"


def refused(name: str) -> Obj:
    """A claim whose configuration the driver refuses."""
    parameters = {
        "apiVersion": "resource.nvidia.com/v1beta1",
        "kind": "MigDeviceConfig",
    }
    opaque = {"driver": kit.DRIVER, "parameters": parameters}
    config = [{"requests": ["gpu"], "opaque": opaque}]
    # A configuration of all requests is left out where it does not fit.
    return kit.claim(name, kit.request("gpu"), kit.request("plain"), config=config)


def test_account_has_what_was_said_without_what_differs_from_run_to_run() -> None:
    with ReferenceTarget() as target:
        scope = new_scope(target)
        keeper = AccountKeeper(scope, [kit.NODE], lambda text: text.replace("ns/", "*/"))
        scope.create(kit.device_class())
        scope.create(kit.template("one"))
        owned: Obj = kit.pod("", templates={"gpu": "one"}, restartPolicy="Never")
        owned["metadata"] = {"generateName": "worker-"}
        made = scope.create(owned)["metadata"]["name"]
        kit.runs(scope, made)
        scope.delete(kit.pod_ref(made), grace_seconds=1)
        kit.gone(scope, kit.pod_ref(made))
        scope.create(refused("refused"))
        scope.create(kit.pod("waits", claims={"gpu": "refused"}))
        scope.pause(30)
        keeper.take()
        scope.delete(kit.pod_ref("waits"), grace_seconds=0)
        kit.gone(scope, kit.pod_ref("waits"))
        account = keeper.finish()
        scope.close()
    assert account is not None
    assert account.calls is not None
    assert account.calls["worker-*-gpu-*"] == ("prepare", "unprepare")
    refusal, *after = account.calls["refused"]
    assert refusal.startswith("prepare: claim */refused (uid <uid>): ")
    assert after == ["unprepare"]
    assert account.events[0] == (
        "Pod waits: Normal Scheduled of default-scheduler: Successfully assigned */waits to <node>"
    )
    [failed] = [line for line in account.events if "FailedPrepare" in line]
    assert failed.endswith(f"for ResourceClaim refused: {refusal.removeprefix('prepare: ')}")
    assert {*account.pods} == {"worker-*", "waits"}
    assert {IN_A_CONTAINER, "claim: gpu: worker-*-gpu-*", "phase: Pending", "phase: Running"} <= {
        *account.pods["worker-*"]
    }
    assert "container ctr0: waiting: ContainerCreating" in account.pods["waits"]
    assert "phase: Failed" not in account.pods["waits"]  # that was said after the account


@pytest.mark.parametrize("other", ["another", "z-last"])
def test_claim_of_another_pod_is_called_by_the_name_of_its_own(other: str) -> None:
    with ReferenceTarget() as target:
        scope = new_scope(target)
        keeper = AccountKeeper(scope, [kit.NODE], str)
        scope.create(kit.device_class())
        scope.create(kit.template("one"))
        scope.create(kit.pod("owner", templates={"gpu": "one"}))
        kit.runs(scope, "owner")
        owner = scope.get(kit.pod_ref("owner"))
        assert owner is not None
        claims = owner["status"]["resourceClaimStatuses"]
        scope.create(kit.pod(other, templates={"gpu": "missing"}))
        status = {"status": {"resourceClaimStatuses": claims}}
        scope.send(Request("patch", kit.pod_ref(other), status, "status"))
        keeper.take()
        account = keeper.finish()
        scope.close()
    assert account is not None
    assert "claim: gpu: owner-gpu-*" in account.pods["owner"]
    assert "claim: gpu: owner-gpu-*" in account.pods[other]
