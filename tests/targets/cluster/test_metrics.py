"""What components count, as they say it in their metrics."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import pytest

from conformance.targets.cluster.reading import explain_no_metrics, read_kubelet_metrics, samples_in
from kube.connection import Connection
from kube.errors import ApiError
from kube.observations import CREATES, OPERATIONS, PREPARED, sum_samples

TEXT = """# HELP dra_resource_claims_in_use [ALPHA] The number of ResourceClaims
# TYPE dra_resource_claims_in_use gauge
dra_resource_claims_in_use{driver_name="<any>"} 3
dra_resource_claims_in_use{driver_name="gpu.example.com"} 2
dra_resource_claims_in_use_other{driver_name="other"} 7
# TYPE dra_operations_duration_seconds histogram
dra_operations_duration_seconds_bucket{operation_name="PrepareResources",le="0.1"} 4
dra_operations_duration_seconds_sum{is_error="false",operation_name="PrepareResources"} 0.25
dra_operations_duration_seconds_count{is_error="false",operation_name="PrepareResources"} 4
dra_operations_duration_seconds_count{is_error="true",operation_name="PrepareResources"} 1
dra_operations_duration_seconds_count{is_error="false",operation_name="UnprepareResources"} 9
"""


@dataclass
class Kubelet:
    """Answers with a text, or with an error."""

    answer: str | ApiError

    def read_text(self, method: str, path: str, **options: Any) -> bytes:
        assert (method, path) == ("GET", "/api/v1/nodes/n/proxy/metrics")
        if isinstance(self.answer, ApiError):
            raise self.answer
        return self.answer.encode()


def connection(answer: str | ApiError) -> Connection:
    return cast("Connection", Kubelet(answer))


@pytest.mark.parametrize(
    ("name", "labels", "value"),
    [
        (PREPARED, {"driver_name": "gpu.example.com"}, 2),
        (PREPARED, {"driver_name": "other"}, 0),
        (OPERATIONS, {"operation_name": "PrepareResources"}, 5),
        (OPERATIONS, {"operation_name": "PrepareResources", "is_error": "false"}, 4),
        (OPERATIONS, {}, 14),
    ],
)
def test_the_series_with_the_labels_are_added_up(
    name: str, labels: dict[str, str], value: float
) -> None:
    found = samples_in(read_kubelet_metrics(connection(TEXT), "n"), name)
    assert found is not None
    assert sum_samples(found, labels) == value


@pytest.mark.parametrize(
    "line",
    [
        'resourceclaim_controller_creates_total{admin_access="false",status="success"} 3',
        f'{CREATES}{{admin_access="false",owner_api_kind="Pod",status="success"}} 3',
    ],
)
def test_a_metric_is_known_by_the_name_of_each_minor(line: str) -> None:
    found = samples_in(line + "\n", CREATES)
    assert found is not None
    assert sum_samples(found, {"status": "success", "admin_access": "false"}) == 3


def test_a_counter_without_an_event_has_no_series() -> None:
    assert samples_in("go_goroutines 7\n", OPERATIONS) == []


def test_what_is_no_metric_is_no_answer() -> None:
    assert samples_in("dra_resource_claims_in_use{driver_name= 3\n", PREPARED) is None


def test_why_there_is_none_is_said() -> None:
    assert explain_no_metrics(connection(TEXT), ["n"]) == ""
    assert "has no metric" in explain_no_metrics(connection("x 1\n"), ["n"])
    refused = ApiError(403, "Forbidden", "nodes/proxy is forbidden")
    said = explain_no_metrics(connection(refused), ["n"])
    assert "nodes/proxy is forbidden" in said
    assert "ci/rbac/kubelet-metrics.yaml" in said
