"""A driver that is only described by a profile, run as a kubelet plugin on a real node.

`python -m tests.cli.described_driver PROFILE` in the environment of docs/clusters.md. Devices,
variables and device files are what the profile says of simulated ones. The other ways are real: a
file, a mount of a folder `disks/DEVICE` with a file `name`, and by `runtime_hook` an interface and
the kernel's CPUs.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, cast

from conformance.scenario.driver.profile import ProfileSpec, load_profile
from conformance.targets.reference.described import DescribedDriver, describe_slices
from kube.values import Obj
from nvml_driver.cluster.kube import KubeClient
from nvml_driver.cluster.publish import Publisher
from nvml_driver.core import DriverCore
from nvml_driver.kubelet.plugin import KubeletPlugin
from nvml_driver.model.prepared import PreparedDevice
from nvml_driver.options import DriverOptions


class RealDriver(DescribedDriver):
    """What a simulated container would be told is there; files are below ``folder``.

    The profile is read for each claim: a test may change what the driver shows.
    """

    def __init__(self, file: str, node: str, cdi: Path, folder: Path) -> None:
        profile = _read(file)
        super().__init__(profile, cdi, describe_slices(profile, node))
        self._file = file
        self._folder = folder

    def prepare(self, claim: Obj) -> list[PreparedDevice]:
        self._profile = _read(self._file)
        return super().prepare(claim)

    def _make_edits(self, uid: str, result: Obj, *more: Any) -> Mapping[str, Any]:
        edits = dict(super()._make_edits(uid, result, *more))
        lines = [line.partition("=") for line in edits["env"]]
        shown = {key: value for key, _, value in lines if " shows " in key}
        edits["env"] = [f"{key}={value}" for key, _, value in lines if key not in shown]
        interfaces: dict[str, str] = {}
        for key, text in shown.items():
            name = key.partition(" ")[0].rpartition("/")[2]
            way = self._profile.probe.ways[name]
            if way.file is not None:
                file = self._folder / "files" / f"{name}-{result['device']}"
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_text(f"{text}\n")
                mount = {
                    "hostPath": str(file),
                    "containerPath": way.file,
                    "options": ["bind", "ro"],
                }
                edits.setdefault("mounts", []).append(mount)
            elif way.kind == "mounts":
                target, root, *_ = text.splitlines()[-1].split()
                disk = self._folder / root.lstrip("/")
                disk.mkdir(parents=True, exist_ok=True)
                (disk / "name").write_text(f"{disk.name}\n")
                mount = {"hostPath": str(disk), "containerPath": target, "options": ["rbind"]}
                edits.setdefault("mounts", []).append(mount)
            elif way.kind == "interfaces":
                interface, what, value = text.splitlines()[-1].split()
                interfaces |= {"name": interface, what: value}
            elif way.kind == "cpus" and text:
                edits.setdefault("hooks", []).append(_hook("cpus", text))
        if interfaces:
            own = (interfaces[what] for what in ("name", "mac", "inet"))
            edits.setdefault("hooks", []).append(_hook("interface", *own))
        return edits


def _hook(*arguments: str) -> Obj:
    return {
        "hookName": "createRuntime",
        "path": sys.executable,
        "args": [sys.executable, "-m", "tests.cli.runtime_hook", *arguments],
        "env": [f"PYTHONPATH={os.environ['PYTHONPATH']}"],
    }


class Core:
    """As much of a `DriverCore` as the sockets and the publisher ask for."""

    def __init__(self, options: DriverOptions, driver: RealDriver) -> None:
        self.options = options
        self._driver = driver
        self._lock = threading.Lock()

    def prepare(self, claim: Obj, *, still_wanted: Callable[[], bool]) -> list[PreparedDevice]:
        with self._lock:
            return self._driver.prepare(claim) if still_wanted() else []

    def unprepare(self, uid: str) -> None:
        with self._lock:
            self._driver.unprepare(uid)

    def resource_slices(self, generation: int) -> list[Obj]:
        specs = [(item, item["spec"]) for item in self._driver.slices]
        return [
            {**item, "spec": {**spec, "pool": {**spec["pool"], "generation": generation}}}
            for item, spec in specs
        ]


def _read(file: str) -> ProfileSpec:
    return load_profile(file, Path("/nonexistent")).spec


def main(file: str) -> None:
    at, profile = os.environ, _read(file)
    node, plugins = at["NODE_NAME"], Path(at["KUBELET_PLUGINS_DIRECTORY_PATH"])
    cdi = Path(at["CDI_ROOT"])
    options = DriverOptions(
        node_name=node, cdi_root=cdi, state_dir=plugins / profile.driver, driver_name=profile.driver
    )
    # driver-check has no folder for it
    folder = Path(at.get("DRA_CONFORMANCE_DRIVER_DIRECTORY") or options.state_dir)
    core = Core(options, RealDriver(file, node, cdi, folder))
    kube = KubeClient.connect(Path(at["KUBECONFIG"]))
    registry = Path(at["KUBELET_REGISTRAR_DIRECTORY_PATH"])
    plugin = KubeletPlugin(
        cast("DriverCore", core), kube.get_claim, plugins=plugins, registry=registry
    )
    publisher = Publisher(kube, core.resource_slices, driver_name=profile.driver, node_name=node)
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    plugin.start()
    publisher.start()
    stop.wait()
    publisher.stop()
    plugin.stop()


if __name__ == "__main__":
    main(sys.argv[1])
