"""Holds an allocator to what Kubernetes' own answers."""

import json
import os
import unittest
from typing import Any


def allocate(question: dict[str, Any], node: str) -> list[list[str]] | None:
    """The allocator under test: the devices of each claim, as driver/pool/device; None: no fit."""
    del question, node
    return []


class Vectors(unittest.TestCase):
    """Each vector of a Kubernetes minor is a test of its own."""

    def test_vectors(self) -> None:
        with open(os.environ["VECTORS"], encoding="utf-8") as lines:  # noqa: PTH123
            vectors = [json.loads(line) for line in lines]
        for vector in vectors:
            if os.environ["KUBERNETES"] not in vector["kubernetes"]:
                continue
            for node, expected in vector["expected"].items():
                with self.subTest(vector["id"]):
                    devices = allocate(vector["question"], node)
                    said = f"{vector['id']}: {vector['sentence']}"
                    assert (devices is not None) == expected, said
                    only = vector.get("devices", {}).get(node)  # there where no others are right
                    if only is not None and devices is not None:
                        assert [sorted(claim) for claim in devices] == only, said


if __name__ == "__main__":
    unittest.main()
