"""How often kube-scheduler writes an allocation into another claim of the same name.

    python docs/found/claim-of-one-name.py [TRIES]

On a local control plane that this starts. A claim asks for one device and has it; while the
scheduler is paused, claim and pod are deleted and made again, and the new claim asks for the other
device. A scheduler that tries the new pod before it hears of the new claim gives it the first one.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.planes import plane
from benchmarks.workloads import DRA, LABELS, NAMESPACE
from kube.connection import Connection
from kube.errors import ApiError
from localkube.binaries.versions import KUBERNETES, full_version

DRIVER = "names.example.com"
GROUP = f"/apis/{DRA}"
CLAIMS = f"{GROUP}/namespaces/{NAMESPACE}/resourceclaims"
PODS = f"/api/v1/namespaces/{NAMESPACE}/pods"


def obj(version: str, kind: str, name: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": version,
        "kind": kind,
        "metadata": {"name": name, "labels": LABELS},
        "spec": spec,
    }


def selecting(expression: str) -> dict[str, Any]:
    return {"selectors": [{"cel": {"expression": expression}}]}


def make(api: Connection, number: int) -> None:
    """A claim for the device of this number, and its pod."""
    wanted = selecting(f'device.attributes["{DRIVER}"].number == {number}')
    request = {"name": "r", "exactly": {"deviceClassName": "names", **wanted}}
    api.request(
        "POST", CLAIMS, None, obj(DRA, "ResourceClaim", "one", {"devices": {"requests": [request]}})
    )
    pod = {
        "containers": [{"name": "c", "image": "none"}],
        "terminationGracePeriodSeconds": 0,
        "resourceClaims": [{"name": "r", "resourceClaimName": "one"}],
    }
    api.request("POST", PODS, None, obj("v1", "Pod", "one", pod))


def device(api: Connection) -> str:
    while True:
        status = api.request("GET", f"{CLAIMS}/one").get("status") or {}
        if "allocation" in status:
            return str(status["allocation"]["devices"]["results"][0]["device"])
        time.sleep(0.01)


def remove(api: Connection) -> None:
    paths = (f"{PODS}/one", f"{CLAIMS}/one")
    for path in paths:
        api.request("DELETE", path, {"gracePeriodSeconds": "0"})
    for path in paths:
        try:
            while True:
                api.request("GET", path)
        except ApiError:
            pass


def main(tries: int) -> None:
    with plane(full_version(KUBERNETES), 1, None) as started:
        api = started.connection
        scheduler = next(r.pid for r in started.cluster.status() if r.name == "kube-scheduler")
        node = api.request("GET", "/api/v1/nodes")["items"][0]["metadata"]["name"]
        of_driver = selecting(f'device.driver == "{DRIVER}"')
        api.request(
            "POST", f"{GROUP}/deviceclasses", None, obj(DRA, "DeviceClass", "names", of_driver)
        )
        devices = [{"name": f"dev-{n}", "attributes": {"number": {"int": n}}} for n in range(2)]
        pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices}
        api.request(
            "POST", f"{GROUP}/resourceslices", None, obj(DRA, "ResourceSlice", "names", spec)
        )
        wrong = 0
        for _ in range(tries):
            make(api, 0)
            device(api)
            time.sleep(0.1)
            os.kill(scheduler, signal.SIGSTOP)
            remove(api)
            make(api, 1)
            os.kill(scheduler, signal.SIGCONT)
            wrong += device(api) != "dev-1"
            remove(api)
        print(f"{wrong} of {tries} claims have what another claim of their name asked for")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 100)
