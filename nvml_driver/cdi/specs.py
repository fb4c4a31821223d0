"""Names, checks and reads CDI specs, through which a prepared device gets into a container.

One spec file for each claim; the kubelet passes the device names that it defines to the container
runtime, which applies their edits. The format is the Container Device Interface specification
(github.com/cncf-tags/container-device-interface, SPEC.md); 0.6.0 is the first version with
``annotations`` and is read by containerd 1.7 and later and by CRI-O.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from nvml_driver.errors import CdiError

VERSION = "0.6.0"
KNOWN_VERSIONS = ("0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0")
CLASS = "claim"
_VENDOR = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*[A-Za-z0-9]")
_CLASS = re.compile(r"[A-Za-z]([A-Za-z0-9_-]*[A-Za-z0-9])?")
_DEVICE = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?")
_SAFE_UID = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,126}[A-Za-z0-9])?")


def vendor_name(driver_name: str) -> str:
    """Return the vendor part of the driver's CDI names, for example ``k8s.gpu.nvidia.com``."""
    return f"k8s.{driver_name}"


def qualified_name(driver_name: str, device_name: str) -> str:
    """Return a CDI device id, ``vendor/class=name``."""
    return f"{vendor_name(driver_name)}/{CLASS}={device_name}"


def spec_path(cdi_root: Path, driver_name: str, claim_uid: str) -> Path:
    """Return the file of a claim's spec. Raises CdiError: the uid could name a file elsewhere."""
    if _SAFE_UID.fullmatch(claim_uid) is None:
        raise CdiError(f"claim uid {claim_uid!r} cannot be used in a file name")
    return cdi_root / f"{vendor_name(driver_name)}-{CLASS}_{claim_uid}.json"


def claim_uid_of(path: Path, driver_name: str) -> str | None:
    """Return the claim that a spec file of this driver is for, None for any other file."""
    prefix = f"{vendor_name(driver_name)}-{CLASS}_"
    if not path.name.startswith(prefix) or path.suffix != ".json":
        return None
    return path.name[len(prefix) : -len(".json")]


def encode_spec(spec: Mapping[str, Any]) -> bytes:
    """Return a spec as file content. Raises CdiError: it breaks a rule of the specification."""
    validate_spec(spec, "new spec")
    return (json.dumps(spec, indent=1, sort_keys=True) + "\n").encode()


def validate_spec(spec: object, where: str) -> None:
    """Check a spec by the rules for what drivers write. Raises CdiError with ``where``, field."""
    if not isinstance(spec, Mapping):
        raise CdiError(f"{where}: a CDI spec is an object")
    if spec.get("cdiVersion") not in KNOWN_VERSIONS:
        raise CdiError(f"{where}: cdiVersion {spec.get('cdiVersion')!r} is not known")
    maker, slash, class_name = str(spec.get("kind")).partition("/")
    if not slash or not _VENDOR.fullmatch(maker) or not _CLASS.fullmatch(class_name):
        raise CdiError(f"{where}: kind {spec.get('kind')!r} is not vendor/class")
    devices = spec.get("devices")
    if not isinstance(devices, list) or not devices:
        raise CdiError(f"{where}: devices must be a list with at least one device")
    names: set[str] = set()
    for index, device in enumerate(devices):
        path = f"{where}: devices[{index}]"
        name = device.get("name") if isinstance(device, Mapping) else None
        if not isinstance(name, str) or not _DEVICE.fullmatch(name):
            raise CdiError(f"{path}: {name!r} is not a device name")
        if name in names:
            raise CdiError(f"{path}: device name {name!r} is there twice")
        names.add(name)
        edits = device.get("containerEdits")
        if not isinstance(edits, Mapping) or not edits:
            raise CdiError(f"{path}: containerEdits must not be empty")
        _validate_edits(edits, f"{path}.containerEdits")
    common = spec.get("containerEdits", {})
    if not isinstance(common, Mapping):
        raise CdiError(f"{where}: containerEdits must be an object")
    _validate_edits(common, f"{where}: containerEdits")


def _validate_edits(edits: Mapping[str, Any], path: str) -> None:
    for variable in edits.get("env") or ():
        name, equals, _ = str(variable).partition("=")
        if not name or not equals:
            raise CdiError(f"{path}.env: {variable!r} is not NAME=value")
    for node in edits.get("deviceNodes") or ():
        if not isinstance(node, Mapping) or not str(node.get("path", "")).startswith("/"):
            raise CdiError(f"{path}.deviceNodes: {node!r} has no absolute path")
        if node.get("type") not in (None, "", "b", "c", "u", "p"):
            raise CdiError(f"{path}.deviceNodes: type {node.get('type')!r} is not b, c, u or p")
    for mount in edits.get("mounts") or ():
        ends = [mount.get("hostPath"), mount.get("containerPath")] if mount else [None]
        if not all(str(end or "").startswith("/") for end in ends):
            raise CdiError(f"{path}.mounts: {mount!r} lacks an absolute path")
    for hook in edits.get("hooks") or ():
        if not hook.get("hookName") or not str(hook.get("path", "")).startswith("/"):
            raise CdiError(f"{path}.hooks: {hook!r} has no name or no absolute path")


def read_spec(path: Path) -> Mapping[str, Any]:
    """Read a spec of ours. Raises FileNotFoundError: it is not there; CdiError: it is not valid."""
    try:
        spec = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise
    except (OSError, ValueError) as error:
        raise CdiError(f"{path}: cannot be read: {error}") from None
    validate_spec(spec, str(path))
    checked: Mapping[str, Any] = spec
    return checked
