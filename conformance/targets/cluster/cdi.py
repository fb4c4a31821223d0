"""CDI specs that nodes hold, where the nodes' file systems are this machine's.

A driver writes one spec for each prepared claim and takes it away when the claim is unprepared, so
a claim's uid in a file name or in a spec says that the claim is prepared.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

_UID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")


def claims_in(roots: Iterable[Path]) -> Mapping[str, Sequence[str]]:
    """Claim uid -> names of the spec files below the roots that mention it, sorted.

    A file that vanishes meanwhile is left out; so is one that is half written (drivers write under
    another name and rename, so such a file will be read the next time).
    """
    found: dict[str, set[str]] = {}
    for root in roots:
        for path in sorted(root.glob("*")) if root.is_dir() else ():
            if path.suffix not in (".json", ".yaml", ".yml"):
                continue
            spec = _read(path)
            if spec is None:
                continue
            for uid in {*_UID.findall(path.name), *_uids(spec)}:
                found.setdefault(uid, set()).add(path.name)
    return {uid: tuple(sorted(names)) for uid, names in sorted(found.items())}


def _read(path: Path) -> Any:
    try:
        text = path.read_text(encoding="utf-8")
        return json.loads(text) if path.suffix == ".json" else yaml.safe_load(text)
    except (OSError, ValueError, yaml.YAMLError):
        return None


def _uids(value: Any) -> set[str]:
    if isinstance(value, str):
        return set(_UID.findall(value))
    if isinstance(value, Mapping):
        return {uid for pair in value.items() for part in pair for uid in _uids(part)}
    if isinstance(value, list):
        return {uid for part in value for uid in _uids(part)}
    return set()
