"""What the driver asks of the API server, and what its vendor's roles allow."""

from __future__ import annotations

from conformance.drivercheck.bench import Bench
from conformance.drivercheck.check import Section
from conformance.drivercheck.violations import NotOfferedError, UnanswerableError, ViolationError
from kube.base.text import one_line

section = Section("rbac", looks_back=True)

_SHOWN = 5


@section.required(
    "kubernetes/pkg/registry/rbac/validation; hardening-guide/dynamic-resource-allocation"
)
def roles_allow_what_is_asked(bench: Bench) -> None:
    """The roles of --rbac allow all that the driver has asked of the API server."""
    if bench.driver.policy is None:
        raise NotOfferedError("no roles were given; give --rbac FILE")
    refused = bench.api.objects.rights.refused
    if refused:
        remainder = f"; and {len(refused) - _SHOWN} more" if len(refused) > _SHOWN else ""
        raise ViolationError(
            f"expected {bench.driver.policy.file} to allow it; refused were: "
            + "; ".join(one_line(refusal, 300) for refusal in refused[:_SHOWN])
            + remainder
        )


@section.recommended("cwe.mitre.org, CWE-532; a token works until it expires")
def token_is_not_logged(bench: Bench) -> None:
    """The driver's log does not have the token with which it asks the API server."""
    if bench.driver.starter is None:
        raise UnanswerableError("the driver's log is not written here; give --driver-command")
    token = bench.api.token.encode()
    previous = b""
    with bench.driver.log.open("rb") as log:
        while block := log.read(1 << 20):
            if token in previous + block:
                raise ViolationError("expected no token in the driver's log; found it there")
            previous = block[-len(token) :]
