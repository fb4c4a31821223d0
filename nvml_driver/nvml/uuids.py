"""UUIDs of simulated devices: two nodes that show one profile do not show the same GPU."""

from __future__ import annotations

import uuid

_SPACE = uuid.UUID("6c1f5a0e-3f0d-4b1e-9a57-0d6f3f2b7c11")


def salted(told: str, salt: str | None) -> str:
    """A UUID that differs from that of another salt; ``told`` itself for None.

    What comes before the first dash (``GPU``, ``MIG``) stays.
    """
    if salt is None:
        return told
    return f"{told.partition('-')[0]}-{uuid.uuid5(_SPACE, f'{salt}/{told}')}"
