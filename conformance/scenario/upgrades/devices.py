"""Published devices, and those of them that a request may be given by its selectors."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from conformance.scenario.upgrades.problem import is_of_dra, list_expressions
from kube.values import Obj
from reference_allocator.cel import CelDevice, CelFeatures, CelRuntimeError, compile_selector
from reference_allocator.cel.errors import CelCompileError, CelUnsupportedError
from reference_allocator.environment import convert_device


@dataclass(frozen=True, slots=True)
class PublishedDevice:
    """A device of a slice.

    Attributes:
        driver: of its slice.
        content: the v1 Device.
        node: the node that has it; None where more than one may.
    """

    driver: str
    content: Obj
    node: str | None

    @property
    def name(self) -> str:
        """Return the device's name."""
        return str(self.content.get("name"))


def list_devices(objects: Iterable[Obj]) -> Iterator[PublishedDevice]:
    """Yield the devices of all slices among the objects."""
    for item in objects:
        if item.get("kind") == "ResourceSlice" and is_of_dra(item):
            spec = item.get("spec") or {}
            for device in spec.get("devices") or []:
                node = spec.get("nodeName") or device.get("nodeName")
                yield PublishedDevice(str(spec.get("driver") or ""), device, node)


class Selection:
    """Finds the devices that requests may be given, for many claims of one cluster.

    Args:
        objects: slices and classes, among others.
        environment: in which selectors are asked: that of the later minor.
    """

    def __init__(self, objects: Sequence[Obj], environment: CelFeatures) -> None:
        self._devices = list(list_devices(objects))
        self._environment = environment
        self._classes = {
            (item.get("metadata") or {}).get("name"): list_expressions(item.get("spec") or {})
            for item in objects
            if item.get("kind") == "DeviceClass" and is_of_dra(item)
        }
        self._converted: dict[int, CelDevice] = {}
        self._selected: dict[tuple[str, ...], list[PublishedDevice]] = {}
        self._alike: dict[tuple[str, tuple[tuple[str, ...], ...]], set[str]] = {}
        self._shapes: dict[tuple[str, ...], list[list[PublishedDevice]]] = {}

    def find_alike_versions(self, bodies: Sequence[Obj], attribute: str) -> set[str]:
        """Return versions that differ in build metadata alone and that one node may have both of.

        Args:
            bodies: the contents of the requests whose devices are compared.
            attribute: the attribute that a constraint names.
        """
        keys = tuple(sorted({self._list_selectors(body) for body in bodies}))
        found = self._alike.get((attribute, keys))
        if found is None:
            devices = {id(device): device for key in keys for device in self._select(key)}
            found = self._alike[attribute, keys] = _find_alike(devices.values(), attribute)
        return found

    def list_shapes(self, body: Obj) -> list[list[PublishedDevice]]:
        """Return the devices for a request, those together of one driver with the same capacities.

        A class that is not given, and a selector without an answer, rule out none.
        """
        key = self._list_selectors(body)
        if key not in self._shapes:
            shapes: dict[tuple[str, frozenset[str]], list[PublishedDevice]] = {}
            for device in self._select(key):
                names = frozenset(device.content.get("capacity") or ())
                shapes.setdefault((device.driver, names), []).append(device)
            self._shapes[key] = list(shapes.values())
        return self._shapes[key]

    def _list_selectors(self, body: Obj) -> tuple[str, ...]:
        of_class = self._classes.get(body.get("deviceClassName"), ())
        return (*of_class, *list_expressions(body))

    def _select(self, selectors: tuple[str, ...]) -> list[PublishedDevice]:
        if not selectors:
            return self._devices
        if selectors not in self._selected:
            *others, last = selectors
            self._selected[selectors] = [
                device
                for device in self._select(tuple(others))
                if not self._is_ruled_out(last, device)
            ]
        return self._selected[selectors]

    def _is_ruled_out(self, expression: str, device: PublishedDevice) -> bool:
        try:
            selector = compile_selector(expression, self._environment)
            return not selector.matches(self._convert(device))
        except (CelCompileError, CelRuntimeError, CelUnsupportedError):
            return False

    def _convert(self, device: PublishedDevice) -> CelDevice:
        """Return what selectors see of a device, converted once. Raises CelRuntimeError."""
        converted = self._converted.get(id(device))
        if converted is None:
            converted = convert_device(self._environment, device.driver, device.content)
            self._converted[id(device)] = converted
        return converted


def list_versions(attribute: Obj) -> list[str]:
    """Return the versions that an attribute has, one or a list of them."""
    texts = [attribute.get("version"), *(attribute.get("versions") or [])]
    return [str(text) for text in texts if text]


def _find_alike(devices: Iterable[PublishedDevice], attribute: str) -> set[str]:
    domain, _, bare = attribute.partition("/")
    by_node: dict[str | None, dict[str, set[str]]] = defaultdict(lambda: defaultdict(set))
    for device in devices:
        attributes = device.content.get("attributes") or {}
        value = attributes.get(attribute)
        if value is None and domain == device.driver:
            value = attributes.get(bare)
        for text in list_versions(value or {}):
            by_node[device.node][text.partition("+")[0]].add(text)
    anywhere = by_node.pop(None, {})
    return {
        text
        for versions in (anywhere, *by_node.values())
        for bare_version, texts in versions.items()
        if len(both := texts | anywhere.get(bare_version, set())) > 1
        for text in both
    }
