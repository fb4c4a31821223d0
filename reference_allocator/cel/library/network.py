"""IP addresses and networks (``k8s.io/apiserver/pkg/cel/library/ip.go``, ``cidr.go``).

Addresses are read as Go's ``net/netip`` reads them; zones and IPv4 addresses mapped into IPv6 are
refused, as Kubernetes does.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, ClassVar, Final

from reference_allocator.api.quoting import go_quote
from reference_allocator.cel.errors import CelRuntimeError, as_predicate
from reference_allocator.cel.runtime.equality import no_overload


@dataclass(slots=True, unsafe_hash=True)
class IP:
    """An IP address."""

    cel_type: ClassVar[str] = "net.IP"
    address: ipaddress.IPv4Address | ipaddress.IPv6Address

    def __str__(self) -> str:
        return str(self.address)


@dataclass(slots=True, unsafe_hash=True)
class CIDR:
    """A network prefix: an address, which may have host bits, and a length."""

    cel_type: ClassVar[str] = "net.CIDR"
    address: IP
    bits: int

    def __str__(self) -> str:
        return f"{self.address}/{self.bits}"

    def covers(self, other: IP) -> bool:
        """Return whether an address begins as the prefix does."""
        network, address = self.address.address, other.address
        host_bits = network.max_prefixlen - self.bits
        return (
            network.version == address.version
            and int(network) >> host_bits == int(address) >> host_bits
        )


def parse_address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address:
    """Parse as ``netip.ParseAddr`` does. Raises ValueError: its message begins as Go's."""
    bare, percent, zone = text.partition("%")
    try:
        # Python takes fewer zones than Go; callers only ask whether there is one.
        return ipaddress.ip_address(f"{bare}%{zone and 'zone'}" if percent else bare)
    except ValueError:
        raise ValueError(f"ParseAddr({go_quote(text)}): unable to parse IP") from None


@lru_cache(maxsize=1024)
def parse_ip(text: str) -> IP:
    """Return an address. Raises CelRuntimeError: the text is none; in Kubernetes' words."""
    try:
        address = parse_address(text)
    except ValueError as error:
        message = f"IP Address {go_quote(text)} parse error during conversion from string: {error}"
        raise CelRuntimeError(message) from None
    if isinstance(address, ipaddress.IPv6Address):
        if address.scope_id:
            raise CelRuntimeError(f"IP address {go_quote(text)} with zone value is not allowed")
        if address.ipv4_mapped is not None:
            raise CelRuntimeError(f"IPv4-mapped IPv6 address {go_quote(text)} is not allowed")
    return IP(address)


@lru_cache(maxsize=1024)
def parse_cidr(text: str) -> CIDR:
    """Return a network. Raises CelRuntimeError: the text is none; in Kubernetes' words."""
    prefix = "network address parse error during conversion from string: "

    def refused(reason: str) -> CelRuntimeError:
        return CelRuntimeError(f"{prefix}{prefix}netip.ParsePrefix({go_quote(text)}): {reason}")

    address_text, slash, bits_text = text.rpartition("/")
    if not slash:
        raise refused("no '/'")
    try:
        address = parse_address(address_text)
    except ValueError as error:
        raise refused(str(error)) from None
    if isinstance(address, ipaddress.IPv6Address) and address.scope_id:
        raise refused("IPv6 zones cannot be present in a prefix")
    if not re.fullmatch(r"[0-9]+", bits_text) or (len(bits_text) > 1 and bits_text[0] == "0"):
        raise refused(f"bad bits after slash: {go_quote(bits_text)}")
    if len(bits_text) > 4 or int(bits_text) > address.max_prefixlen:
        raise refused("prefix length out of range")
    if isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None:
        raise CelRuntimeError(f"{prefix}IPv4-mapped IPv6 address {go_quote(text)} is not allowed")
    return CIDR(IP(address), int(bits_text))


def _parse_other_ip(text: str) -> IP:
    """Return the address of an argument; Kubernetes loses the reason why one does not parse."""
    try:
        return parse_ip(text)
    except CelRuntimeError:
        raise no_overload() from None


def _contains_cidr(network: CIDR, other: CIDR) -> bool:
    return network.bits <= other.bits and network.covers(other.address)


def _mask(network: CIDR) -> CIDR:
    masked = ipaddress.ip_network((network.address.address, network.bits), strict=False)
    return CIDR(IP(masked.network_address), network.bits)


def _is_global_unicast(address: IP) -> bool:
    raw = address.address
    if raw.version == 4 and str(raw) == "255.255.255.255":
        return False
    return not (
        raw.is_unspecified or raw.is_loopback or raw.is_multicast or _is_link_local_unicast(address)
    )


def _is_link_local_unicast(address: IP) -> bool:
    network = "169.254.0.0/16" if address.address.version == 4 else "fe80::/10"
    return address.address in ipaddress.ip_network(network)


def _is_link_local_multicast(address: IP) -> bool:
    if address.address.version == 4:
        return address.address in ipaddress.ip_network("224.0.0.0/24")
    # ff?2::/16: any flags, link-local scope.
    packed = address.address.packed
    return packed[0] == 0xFF and packed[1] & 0x0F == 0x02


OVERLOADS: Final[dict[str, Callable[..., Any]]] = {
    "string_to_ip": parse_ip,
    "is_ip": as_predicate(parse_ip),
    "ip_is_canonical": lambda text: str(parse_ip(text)) == text,
    "ip_to_string": str,
    "ip_family": lambda value: value.address.version,
    "ip_is_unspecified": lambda value: value.address.is_unspecified,
    "ip_is_loopback": lambda value: value.address.is_loopback,
    "ip_is_link_local_multicast": _is_link_local_multicast,
    "ip_is_link_local_unicast": _is_link_local_unicast,
    "ip_is_global_unicast": _is_global_unicast,
    "string_to_cidr": parse_cidr,
    "is_cidr": as_predicate(parse_cidr),
    "cidr_to_string": str,
    "cidr_ip": lambda value: value.address,
    "cidr_is_mask": lambda value: value == _mask(value),
    "cidr_masked": _mask,
    "cidr_prefix_length": lambda value: value.bits,
    "cidr_contains_ip_ip": CIDR.covers,
    "cidr_contains_ip_string": lambda value, text: value.covers(_parse_other_ip(text)),
    "cidr_contains_cidr": _contains_cidr,
    "cidr_contains_cidr_string": lambda value, text: _contains_cidr(value, parse_cidr(text)),
}
