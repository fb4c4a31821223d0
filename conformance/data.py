"""Where the suite's data is: beside the packages in a checkout, inside the wheel otherwise.

The wheel carries ``scenarios/`` under ``conformance/_data``.
"""

from __future__ import annotations

from pathlib import Path

from kube.base.folders import data_folder


def scenarios_dir() -> Path:
    """The directory of the shipped scenarios, driver profiles and registries."""
    return data_folder(Path(__file__).resolve().parent, "scenarios", "scenarios")
