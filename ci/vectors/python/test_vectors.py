"""Holds an allocator to what Kubernetes' own answers."""

import json
import os
import unittest
from typing import Any


def fits(question: dict[str, Any], node: str) -> bool:
    """The allocator under test: whether the question's claims fit a node."""
    del question, node
    return True


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
                    got = fits(vector["question"], node)
                    assert got == expected, f"{vector['id']}: {vector['sentence']}"


if __name__ == "__main__":
    unittest.main()
