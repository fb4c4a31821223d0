"""A CDI spec: its fields, and what a container runtime refuses.

The format and its rules: github.com/cncf-tags/container-device-interface v1.1.2, SPEC.md, specs-go
(config.go, version.go) and pkg/cdi (spec.go, device.go, container-edits.go).
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, Final, TypeVar, cast

import yaml

from kube.base.files import read_regular
from kube.cdi import goyaml

MAX_BYTES: Final = 4 << 20
VERSIONS: Final = (
    *("0.1.0", "0.2.0", "0.3.0", "0.4.0", "0.5.0", "0.6.0", "0.7.0", "0.8.0", "1.0.0", "1.1.0"),
)
NO_PERMISSIONS: Final = "none"
_HOOKS: Final = frozenset(
    {
        *("prestart", "createRuntime", "createContainer"),
        *("startContainer", "poststart", "poststop"),
    }
)
_VENDOR_OR_CLASS: Final = re.compile(r"[A-Za-z]([A-Za-z0-9_.-]*[A-Za-z0-9])?")
_NAME: Final = re.compile(r"[A-Za-z0-9]([A-Za-z0-9_.:-]*[A-Za-z0-9])?")
_MOST_OF_CLOS_ID: Final = 4095
"""Bytes of a file's path in Linux."""


T = TypeVar("T")


def _field(read: goyaml.Read[T], default: Any, name: str = "") -> Any:
    """Return a field of a part; its name in the format is its own in camelCase, if not given."""
    return field(default=default, metadata={"read": read, "name": name})


def _read(part: Callable[..., T]) -> goyaml.Read[T]:
    """Return what reads a part of a spec, a dataclass of such fields."""
    attributes: dict[str, str] = {}
    reads: dict[str, goyaml.Read[Any]] = {}
    for attribute in fields(cast("Any", part)):
        first, *rest = attribute.name.split("_")
        name = attribute.metadata["name"] or first + "".join(map(str.capitalize, rest))
        attributes[name] = attribute.name
        reads[name] = attribute.metadata["read"]

    def read(node: yaml.Node) -> T | None:
        values = goyaml.read_fields(node, reads)
        if values is None:
            return None
        return part(**{attributes[name]: value for name, value in values.items()})

    return read


_texts: Final = goyaml.list_of(goyaml.read_text)


@dataclass(frozen=True, slots=True)
class DeviceNode:
    """A device file."""

    path: str = _field(goyaml.read_text, "")
    host_path: str = _field(goyaml.read_text, "")
    type: str = _field(goyaml.read_text, "")
    major: int = _field(goyaml.read_int64, 0)
    minor: int = _field(goyaml.read_int64, 0)
    file_mode: int | None = _field(goyaml.read_uint32, None)
    permissions: str = _field(goyaml.read_text, "")
    uid: int | None = _field(goyaml.read_uint32, None)
    gid: int | None = _field(goyaml.read_uint32, None)

    def list_faults(self) -> Iterator[str]:
        if not self.path:
            yield "path: is empty"
        if self.type not in ("", "b", "c", "u", "p"):
            yield f"type: {self.type[:20]!r} is not b, c, u or p"
        if self.major < 0 or self.minor < 0:
            yield "major, minor: a number is negative"
        if self.permissions != NO_PERMISSIONS and self.permissions.strip("rwm"):
            yield f"permissions: {self.permissions[:20]!r} are not of r, w and m, or none"


@dataclass(frozen=True, slots=True)
class Mount:
    """A mount."""

    host_path: str = _field(goyaml.read_text, "")
    container_path: str = _field(goyaml.read_text, "")
    options: tuple[str, ...] = _field(_texts, ())
    type: str = _field(goyaml.read_text, "")

    def list_faults(self) -> Iterator[str]:
        if not self.host_path:
            yield "hostPath: is empty"
        if not self.container_path:
            yield "containerPath: is empty"


@dataclass(frozen=True, slots=True)
class Hook:
    """A hook of the container's life."""

    hook_name: str = _field(goyaml.read_text, "")
    path: str = _field(goyaml.read_text, "")
    args: tuple[str, ...] = _field(_texts, ())
    env: tuple[str, ...] = _field(_texts, ())
    timeout: int | None = _field(goyaml.read_int64, None)

    def list_faults(self) -> Iterator[str]:
        if self.hook_name not in _HOOKS:
            yield f"hookName: {self.hook_name[:40]!r} is none of {', '.join(sorted(_HOOKS))}"
        if not self.path:
            yield "path: is empty"
        yield from _faults_of_env(self.env)


@dataclass(frozen=True, slots=True)
class IntelRdt:
    """Cache and memory bandwidth; ``schemata``: an empty list is more than none."""

    clos_id: str = _field(goyaml.read_text, "", "closID")
    l3_cache_schema: str = _field(goyaml.read_text, "")
    mem_bw_schema: str = _field(goyaml.read_text, "")
    schemata: tuple[str, ...] | None = _field(_texts, None)
    enable_monitoring: bool = _field(goyaml.read_boolean, False)

    def list_faults(self) -> Iterator[str]:
        name = self.clos_id
        too_long = len(name.encode("utf-8", "surrogateescape")) > _MOST_OF_CLOS_ID
        if name != "/" and (too_long or name in (".", "..") or "/" in name or "\n" in name):
            yield "closID: is no name of a file"


@dataclass(frozen=True, slots=True)
class NetDevice:
    """A network device that is moved into the container."""

    host_interface_name: str = _field(goyaml.read_text, "")
    name: str = _field(goyaml.read_text, "")

    def list_faults(self) -> Iterator[str]:
        if not self.host_interface_name:
            yield "hostInterfaceName: is empty"
        if not self.name:
            yield "name: is empty"


@dataclass(frozen=True, slots=True)
class Edits:
    """What is changed in a container."""

    env: tuple[str, ...] = _field(_texts, ())
    device_nodes: tuple[DeviceNode, ...] = _field(goyaml.list_without_nulls(_read(DeviceNode)), ())
    net_devices: tuple[NetDevice, ...] = _field(goyaml.list_without_nulls(_read(NetDevice)), ())
    hooks: tuple[Hook, ...] = _field(goyaml.list_without_nulls(_read(Hook)), ())
    mounts: tuple[Mount, ...] = _field(goyaml.list_without_nulls(_read(Mount)), ())
    intel_rdt: IntelRdt | None = _field(_read(IntelRdt), None)
    additional_gids: tuple[int, ...] = _field(goyaml.list_of(goyaml.read_uint32), ())

    def list_faults(self) -> Iterator[str]:
        """Yield what a runtime refuses, the field first."""
        yield from _faults_of_env(self.env)
        items_by_field: Mapping[str, tuple[DeviceNode | Hook | Mount | NetDevice, ...]] = {
            "deviceNodes": self.device_nodes,
            "hooks": self.hooks,
            "mounts": self.mounts,
            "netDevices": self.net_devices,
        }
        for name, items in items_by_field.items():
            for number, item in enumerate(items):
                yield from (f"{name}[{number}]: {fault}" for fault in item.list_faults())
        if self.intel_rdt is not None:
            yield from (f"intelRdt: {fault}" for fault in self.intel_rdt.list_faults())
        yield from faults_of_net_devices(self.net_devices)


@dataclass(frozen=True, slots=True)
class CdiDevice:
    """A device of a spec."""

    name: str = _field(goyaml.read_text, "")
    annotations: Mapping[str, str] | None = _field(goyaml.mapping_of_texts, None)
    container_edits: Edits = _field(_read(Edits), Edits())


@dataclass(frozen=True, slots=True)
class Spec:
    """A spec file."""

    cdi_version: str = _field(goyaml.read_text, "")
    kind: str = _field(goyaml.read_text, "")
    annotations: Mapping[str, str] | None = _field(goyaml.mapping_of_texts, None)
    devices: tuple[CdiDevice, ...] = _field(goyaml.list_of(_read(CdiDevice)), ())
    container_edits: Edits = _field(_read(Edits), Edits())


_read_spec: Final = _read(Spec)


def parse(file: Path) -> Spec:
    """Return one file. Raises OSError: it cannot be read; ValueError: it is not a valid spec."""
    spec = decode_spec(read_regular(file, MAX_BYTES))
    for fault in _faults(spec):
        raise ValueError(fault)
    return spec


def decode_spec(data: bytes) -> Spec:
    """Return the fields of a spec file, JSON or YAML, not yet held against the rules.

    Raises ValueError: it cannot be read, or has a field that specs have not, or of another type.
    """
    try:
        document = goyaml.read_first_document(data)
    except yaml.YAMLError as error:
        raise ValueError(f"cannot be decoded: {error}") from None
    spec = None if document is None else _read_spec(document)
    if spec is None:
        raise ValueError("is empty")
    return spec


def _faults(spec: Spec) -> Iterator[str]:
    version = spec.cdi_version.removeprefix("v")
    if version not in VERSIONS:
        yield f"cdiVersion: {spec.cdi_version[:20]!r} is none of {', '.join(VERSIONS)}"
    vendor, _, of_class = spec.kind.partition("/")
    if not (_VENDOR_OR_CLASS.fullmatch(vendor) and _VENDOR_OR_CLASS.fullmatch(of_class)):
        yield f"kind: {spec.kind[:60]!r} is not vendor/class"
    yield from (f"containerEdits.{fault}" for fault in spec.container_edits.list_faults())
    for number, device in enumerate(spec.devices):
        place = f"devices[{number}]"
        if not _NAME.fullmatch(device.name):
            yield f"{place}.name: {device.name[:60]!r} is no name of a device"
        if not _changes(device.container_edits):
            yield f"{place}.containerEdits: are empty"
        yield from (
            f"{place}.containerEdits.{fault}" for fault in device.container_edits.list_faults()
        )
    names = Counter(device.name for device in spec.devices)
    yield from (f"devices: {name!r} is there twice" for name, n in names.items() if n > 1)
    if not names:
        yield "devices: there is none"
    needed = min_version(spec)
    if VERSIONS.index(needed) > VERSIONS.index(version):
        yield f"cdiVersion is {version}; what it uses needs {needed}"


def _faults_of_env(env: tuple[str, ...]) -> Iterator[str]:
    yield from (
        f"env: {variable[:60]!r} is not NAME=value" for variable in env if variable.find("=") < 1
    )


def faults_of_net_devices(devices: tuple[NetDevice, ...]) -> Iterator[str]:
    """Yield which network devices cannot be moved into one container together."""
    for field_name, names in (
        ("hostInterfaceName", [device.host_interface_name for device in devices]),
        ("name", [device.name for device in devices]),
    ):
        for name, count in Counter(names).items():
            if count > 1:
                yield f"netDevices: {field_name} {name[:60]!r} is there twice"


def _changes(edits: Edits) -> bool:
    return edits.intel_rdt is not None or any(
        getattr(edits, attribute.name)
        for attribute in fields(edits)
        if attribute.name != "intel_rdt"
    )


def min_version(spec: Spec) -> str:
    """Return the first version that has all of what a spec uses (specs-go v1.1.1, version.go).

    For hostPath and a mount's type the library looks at the last device and at the spec's edits:
    its module is for a Go in which a pointer to a loop's variable is one to the last item.
    """
    edits = [spec.container_edits, *(item.container_edits for item in spec.devices)]
    rdt = [item.intel_rdt for item in edits if item.intel_rdt is not None]
    if any(item.net_devices for item in edits) or any(
        r.schemata is not None or r.enable_monitoring for r in rdt
    ):
        return "1.1.0"
    if rdt or any(item.additional_gids for item in edits):
        return "0.7.0"
    dotted = "." in spec.kind.partition("/")[2]
    if dotted or spec.annotations or any(item.annotations for item in spec.devices):
        return "0.6.0"
    looked_at = (edits[0], edits[-1])
    hosts = any(node.host_path for item in looked_at for node in item.device_nodes)
    if hosts or any("0" <= item.name[:1] <= "9" for item in spec.devices):
        return "0.5.0"
    types = any(mount.type for item in looked_at for mount in item.mounts)
    return "0.4.0" if types else "0.3.0"


def is_id(text: str) -> bool:
    """Return whether it is a qualified device name, vendor/class=name."""
    kind, equals, name = text.partition("=")
    vendor, slash, of_class = kind.partition("/")
    return bool(
        equals
        and slash
        and _VENDOR_OR_CLASS.fullmatch(vendor)
        and _VENDOR_OR_CLASS.fullmatch(of_class)
        and _NAME.fullmatch(name)
    )
