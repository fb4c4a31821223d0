"""The parts of an explanation, as values and as text; the explainer makes them."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Removal:
    """The devices that one rule removed.

    Attributes:
        rule: "in use", "fail selector #0", "tainted", ...
        detail: what decided, for example the selector with the attribute's value; may be empty.
        devices: the devices, as `driver/pool/device`.
    """

    rule: str
    detail: str
    devices: tuple[str, ...]

    def __str__(self) -> str:
        text = f"{len(self.devices)} {self.rule}"
        return f"{text} ({self.detail})" if self.detail else text


@dataclass(frozen=True)
class RequestReport:
    """The devices that one request finds on one node.

    Attributes:
        claim: `namespace/name`.
        request: `request` or `request/subrequest`.
        device_class: the class that it asks for.
        needed: how many devices it needs; None for all.
        of_class: how many devices of the class the node has.
        removals: what removed them, in order.
        remaining: the devices that are left, as `driver/pool/device`.
        alone: whether the request, without all others, could be satisfied.
        obstacle: what keeps devices that are left, and are enough, from being had together.
    """

    claim: str
    request: str
    device_class: str
    needed: int | None
    of_class: int
    removals: tuple[Removal, ...]
    remaining: tuple[str, ...]
    alone: bool
    obstacle: str = ""

    def __str__(self) -> str:
        plural = "device" if self.of_class == 1 else "devices"
        text = f"{self.of_class or 'no'} {plural} of class {self.device_class}"
        removed = [str(item) for item in self.removals]
        if self.remaining or (self.of_class and not removed):
            removed.append(f"{len(self.remaining)} left")
        if removed:
            text += ": " + ", ".join(removed)
        if self.alone:
            return text
        if self.needed is None:
            return f"{text}; all are needed"
        enough = len(self.remaining) >= self.needed
        need = f"{self.obstacle} keeps {self.needed} of them from being had together"
        need = need if enough else f"{self.needed} needed"
        return f"{text}; {need}" if self.needed > 1 or enough else text


@dataclass(frozen=True)
class NodeReport:
    """The reason why one node does or does not do.

    Attributes:
        node: its name.
        kind: what the allocator answers for it.
        error: the allocator's error, if any.
        pools: pools that cannot be used now, with the reason.
        requests: the devices for each request; empty where the allocator stops before it looks.
        conflict: names of claims (`namespace/name`) or requests that cannot be had together; only
            where each could be had alone.
    """

    node: str
    kind: str
    error: str
    pools: tuple[str, ...]
    requests: tuple[RequestReport, ...]
    conflict: tuple[str, ...]

    @property
    def text(self) -> str:
        """The reason, without the node's name."""
        sentences: list[str] = []
        if self.error:
            sentences.append(self.error)
        sentences += self.pools
        if self.kind == "allocated":
            sentences.append("can be allocated")
        elif self.conflict:
            sentences.append(
                f"each can be allocated alone, but not {' and '.join(self.conflict)} together"
            )
        several = len({(item.claim, item.request) for item in self.requests}) > 1
        for item in self.requests:
            if self.kind in ("none", "nodeError") and (self.conflict or not item.alone):
                prefix = f"claim {item.claim} request {item.request}: " if several else ""
                sentences.append(f"{prefix}{item}")
        return "; ".join(sentences) if sentences else "no device is published for the node"


@dataclass(frozen=True)
class Explanation:
    """The reasons why the claims of a snapshot can or cannot be allocated, node by node."""

    nodes: tuple[NodeReport, ...]

    @property
    def text(self) -> str:
        """The reasons as `0/3 nodes: node-a: ...`; nodes with the same reason share a line."""
        fitting = sum(report.kind == "allocated" for report in self.nodes)
        grouped: dict[str, list[str]] = {}
        for report in self.nodes:
            grouped.setdefault(report.text, []).append(report.node)
        head = f"{fitting}/{len(self.nodes)} nodes"
        lines = [f"{', '.join(names)}: {text}" for text, names in grouped.items()]
        if not lines:
            return head
        return f"{head}: {lines[0]}" if len(lines) == 1 else "\n  ".join([f"{head}:", *lines])
