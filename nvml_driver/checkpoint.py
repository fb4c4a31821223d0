"""The driver's memory across restarts: one JSON file, versioned, checksummed, replaced in one step.

A checkpoint that cannot be trusted is refused and left alone: starting with an empty one could
hand a device that a container uses to another claim.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from nvml_driver.errors import CheckpointError
from nvml_driver.files import write_atomic
from nvml_driver.prepared import ClaimRecord

VERSION = 1
FILE_NAME = "checkpoint.json"


def _checksum(data: Mapping[str, Any]) -> str:
    canonical = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()


class Checkpoint(Mapping[str, ClaimRecord]):
    """Claim uid to record, the same in memory and on disk.

    A change that cannot be written is not made.
    """

    def __init__(
        self, state_dir: Path, *, driver_name: str, node_name: str, durable: bool = True
    ) -> None:
        """Read the checkpoint of ``state_dir``, or begin one.

        Raises:
            CheckpointError: there is one, and it is corrupt, newer, or of another driver or node.
        """
        self.path = state_dir / FILE_NAME
        self._owner = {"driverName": driver_name, "nodeName": node_name}
        self._durable = durable
        self._records = self._read()

    def __getitem__(self, uid: str) -> ClaimRecord:
        return self._records[uid]

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def put(self, record: ClaimRecord) -> None:
        """Remember a claim, or its new state.

        Raises:
            CheckpointError: it could not be written.
        """
        self._replace({**self._records, record.uid: record})

    def drop(self, uid: str) -> None:
        """Forget a claim; nothing happens if it is not known.

        Raises:
            CheckpointError: it could not be written.
        """
        if uid in self._records:
            self._replace({key: value for key, value in self._records.items() if key != uid})

    def _replace(self, records: dict[str, ClaimRecord]) -> None:
        claims = {uid: record.to_json() for uid, record in records.items()}
        data = {**self._owner, "claims": claims}
        document = {"version": VERSION, "checksum": _checksum(data), "data": data}
        content = json.dumps(document, separators=(",", ":")).encode() + b"\n"
        try:
            write_atomic(self.path, content, durable=self._durable, mode=0o600)
        except OSError as error:
            raise CheckpointError(f"cannot write the checkpoint {self.path}: {error}") from None
        self._records = records

    def _read(self) -> dict[str, ClaimRecord]:
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise CheckpointError(f"cannot read the checkpoint {self.path}: {error}") from None
        try:
            document = json.loads(content)
            version = document["version"]
            if version != VERSION:
                raise self._refusal(f"is of version {version!r}, this driver reads {VERSION}")
            data = document["data"]
            if document["checksum"] != _checksum(data):
                raise self._refusal("is corrupt: its checksum does not match")
            owner = {key: data[key] for key in self._owner}
            records = {uid: ClaimRecord.from_json(uid, c) for uid, c in data["claims"].items()}
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            problem = f"{type(error).__name__}: {error}"
            raise self._refusal(f"is corrupt or not a checkpoint ({problem})") from None
        if owner != self._owner:
            theirs = f"driver {owner['driverName']} on node {owner['nodeName']}"
            raise self._refusal(f"belongs to {theirs}")
        return records

    def _refusal(self, what: str) -> CheckpointError:
        return CheckpointError(
            f"the checkpoint {self.path} {what}. It says which devices containers of this node "
            "use, so it is neither used nor overwritten. Start the driver that wrote it, or drain "
            "the node, move the file away and start again"
        )
