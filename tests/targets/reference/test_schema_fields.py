from __future__ import annotations

import json

from conformance.targets.reference.schema import generate


def test_known_fields_are_those_of_the_kubernetes_client() -> None:
    kept = json.loads(generate.FIELDS.read_text(encoding="utf-8"))
    assert kept == json.loads(json.dumps(generate.generate())), (
        "run python -m conformance.targets.reference.schema.generate"
    )
