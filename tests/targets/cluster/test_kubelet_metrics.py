"""The claims that a kubelet has prepared, as its metrics say it through the API server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import pytest

from conformance.kubeapi.connection import Connection
from conformance.targets.base import ApiError
from conformance.targets.cluster.kubelet_metrics import prepared_claims, why_not

TEXT = """# TYPE dra_resource_claims_in_use gauge
dra_resource_claims_in_use{driver_name="<any>"} 3
dra_resource_claims_in_use{driver_name="gpu.example.com"} 2
dra_resource_claims_in_use_other{driver_name="other"} 7
"""


@dataclass
class Kubelet:
    """Answers with a text, or with an error."""

    answer: str | ApiError

    def text(self, method: str, path: str, **options: Any) -> bytes:
        assert (method, path) == ("GET", "/api/v1/nodes/n/proxy/metrics")
        if isinstance(self.answer, ApiError):
            raise self.answer
        return self.answer.encode()


def connection(answer: str | ApiError) -> Connection:
    return cast("Connection", Kubelet(answer))


@pytest.mark.parametrize(
    ("text", "driver", "count"),
    [(TEXT, "gpu.example.com", 2), (TEXT, "other", 0), ("go_goroutines 7\n", "other", None)],
)
def test_the_count_of_a_driver_is_read(text: str, driver: str, count: int | None) -> None:
    assert prepared_claims(connection(text), "n", driver) == count


def test_why_there_is_none_is_said() -> None:
    assert why_not(connection(TEXT), ["n"], "d") == ""
    assert "has no metric" in why_not(connection("x 1\n"), ["n"], "d")
    refused = ApiError(403, "Forbidden", "nodes/proxy is forbidden")
    said = why_not(connection(refused), ["n"], "d")
    assert "nodes/proxy is forbidden" in said
    assert "ci/rbac/kubelet-metrics.yaml" in said
