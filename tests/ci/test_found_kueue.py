"""The page about Kueue names each written vector that it answers wrong, and no other."""

from __future__ import annotations

import json
import re
from pathlib import Path

from ci.allocators.measure import RESULTS
from tests.vectors.make import HAND_MADE

PAGE = Path(__file__).parents[2] / "ci/allocators/kueue/README.md"


def test_the_classes_have_the_vectors_that_were_answered_wrong() -> None:
    kept = json.loads(RESULTS.read_text(encoding="utf-8"))
    (result,) = (item for name, item in kept.items() if name.startswith("Kueue"))
    written = {item.id: item.fits for item in HAND_MADE}
    rows = re.findall(
        r"^\| Q\d+ \|[^|]*\| (yes|no) \|[^|]*\| ([^|]*) \|", PAGE.read_text("utf-8"), re.MULTILINE
    )
    said = {name: word == "yes" for word, names in rows for name in names.split(", ")}
    assert said.keys() == written.keys() & set(result["vectors"]["wrong"])
    assert all(written[name] != says_yes for name, says_yes in said.items())
