from __future__ import annotations

from typing import Any

from conformance.targets.seam.overlaps import in_use


def claim(node: str = "n", driver: str = "d", **status: Any) -> dict[str, Any]:
    fields = [{"key": "metadata.name", "operator": "In", "values": [node]}]
    allocation = {
        "devices": {"results": [{"driver": driver, "pool": node, "device": "x"}]},
        "nodeSelector": {"nodeSelectorTerms": [{"matchFields": fields}]},
    }
    return {"status": {"allocation": allocation, "reservedFor": [{"name": "p"}], **status}}


def test_claims_that_somebody_has_on_that_node_count() -> None:
    assert in_use([claim(), claim()], "d", "n") == 2


def test_claims_of_others_or_of_nobody_do_not_count() -> None:
    others = [claim("m"), claim(driver="e"), claim(reservedFor=[]), claim(allocation=None), {}]
    assert in_use(others, "d", "n") == 0
