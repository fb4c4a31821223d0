"""What this machine lacks for a stage: ``python -m ci.testing.lacking STAGE``, a line for each."""

import sys

from localkube.base import ClusterUsageError
from localkube.gocommand import find_compiler, find_go
from localkube.preflight import missing_for_nodes


def missing_for_stage(stage: str) -> list[str]:
    """One line for each thing that a stage of `ci/test` needs and this machine lacks."""
    if stage == "fuzz":
        return _missing_for_builds()
    if sys.platform != "linux":
        return ["Linux"]
    return [*missing_for_nodes(), *_missing_for_builds()]


def _missing_for_builds() -> list[str]:
    lines = []
    for find in (find_go, find_compiler):
        try:
            find()
        except ClusterUsageError as error:
            lines.append(str(error))
    return lines


if __name__ == "__main__":
    print(end="".join(f"{one}\n" for one in missing_for_stage(sys.argv[1])))
