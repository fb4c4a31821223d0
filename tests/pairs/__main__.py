"""Writes docs/pairs.md."""

from __future__ import annotations

from tests.pairs.page import PAGE, PAIRS, page, read_reasons, scenarios_of_pairs
from tests.scenario.shipped import shipped

if __name__ == "__main__":
    found, reasons = scenarios_of_pairs(shipped()), read_reasons()
    PAGE.write_text(page(found, reasons), encoding="utf-8")
    for pair in PAIRS:
        if pair not in found and pair not in reasons:
            print(f"{' x '.join(pair)}: neither a scenario nor a reason")
        if pair in found and pair in reasons:
            print(f"{' x '.join(pair)}: has a scenario, the reason can go")
