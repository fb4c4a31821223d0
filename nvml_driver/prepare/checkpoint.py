"""Keeps the driver's memory over restarts: one JSON file, checksummed, replaced in one step.

A checkpoint that cannot be trusted is refused and left alone: starting with an empty one could
hand a device that a container uses to another claim. A copy of it is kept beside it, so that what
was wrong can be looked into after the node was made to work again.

Two instances of the driver may use one file (under a lock), so it is read again before each use.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from nvml_driver.errors import CheckpointError, format_problems
from nvml_driver.model.prepared import ClaimRecord
from nvml_driver.storage.files import remove_scratch, write_atomic

VERSION = 2
FILE_NAME = "checkpoint.json"


def _checksum(data: Mapping[str, Any]) -> str:
    canonical = json.dumps(data, sort_keys=True, separators=(",", ":"))
    return "sha256:" + hashlib.sha256(canonical.encode()).hexdigest()


class Checkpoint(Mapping[str, ClaimRecord]):
    """The claims that the driver has prepared, by uid, the same in memory and on disk.

    A change that cannot be written is not made. ``boot_id`` is of the boot in which the claims were
    prepared; empty where not known.
    """

    def __init__(
        self, state_dir: Path, *, driver_name: str, node_name: str, durable: bool = True
    ) -> None:
        """Read or begin a checkpoint. Raises CheckpointError: corrupt, newer, or another's."""
        self.path = state_dir / FILE_NAME
        self.boot_id = ""
        self._owner = {"driverName": driver_name, "nodeName": node_name}
        self._durable = durable
        self._content: bytes | None = None
        self._records: dict[str, ClaimRecord] = {}
        self.refresh()

    def __getitem__(self, uid: str) -> ClaimRecord:
        return self._records[uid]

    def __iter__(self) -> Iterator[str]:
        return iter(self._records)

    def __len__(self) -> int:
        return len(self._records)

    def refresh(self) -> None:
        """Take up what another instance wrote. Raises CheckpointError: as for a new one."""
        try:
            content = self.path.read_bytes()
        except FileNotFoundError:
            if self._content is not None:
                raise CheckpointError(
                    f"the checkpoint {self.path} was removed while the driver runs; put it back, "
                    "or drain the node and start the driver again"
                ) from None
            return
        except OSError as error:
            raise CheckpointError(f"cannot read the checkpoint {self.path}: {error}") from None
        if content != self._content:
            self._records, self.boot_id = self._read(content)
            self._content = content

    def put(self, record: ClaimRecord) -> None:
        """Remember a claim, or its new state. Raises CheckpointError: it could not be written."""
        self._replace({**self._records, record.uid: record}, self.boot_id)

    def drop(self, uid: str) -> None:
        """Forget a claim, if it is known. Raises CheckpointError: it could not be written."""
        if uid in self._records:
            records = {key: value for key, value in self._records.items() if key != uid}
            self._replace(records, self.boot_id)

    def begin_boot(self, boot_id: str) -> None:
        """Remember the claims' boot. Raises CheckpointError: it could not be written."""
        if boot_id != self.boot_id:
            self._replace(self._records, boot_id)

    def remove_scratch(self) -> None:
        """Remove what a crash while writing left; nobody may be writing. Raises CheckpointError."""
        try:
            remove_scratch(self.path.parent, FILE_NAME)
        except OSError as error:
            raise CheckpointError(f"cannot tidy {self.path.parent}: {error}") from None

    def _replace(self, records: dict[str, ClaimRecord], boot_id: str) -> None:
        claims = {uid: record.to_json() for uid, record in records.items()}
        data = {**self._owner, "bootID": boot_id, "claims": claims}
        document = {"version": VERSION, "checksum": _checksum(data), "data": data}
        content = json.dumps(document, separators=(",", ":")).encode() + b"\n"
        try:
            write_atomic(
                self.path, content, durable=self._durable, mode=0o600, fault_prefix="checkpoint"
            )
        except OSError as error:
            raise CheckpointError(f"cannot write the checkpoint {self.path}: {error}") from None
        # Only now, because a change that cannot be written is not made.
        self._records, self._content, self.boot_id = records, content, boot_id

    def _read(self, content: bytes) -> tuple[dict[str, ClaimRecord], str]:
        try:
            document = json.loads(content)
            version = document["version"]
            if version != VERSION:
                raise self._refusal(
                    content, f"is of version {version!r}, this driver reads {VERSION}"
                )
            data = document["data"]
            if document["checksum"] != _checksum(data):
                raise self._refusal(content, "is corrupt: its checksum does not match")
            owner = {key: data[key] for key in self._owner}
            records = {uid: ClaimRecord.from_json(uid, c) for uid, c in data["claims"].items()}
            boot_id = str(data["bootID"])
        except ValidationError as error:
            problem = format_problems(error, root="claim")
            raise self._refusal(content, f"is corrupt or not a checkpoint ({problem})") from None
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            problem = f"{type(error).__name__}: {error}"
            raise self._refusal(content, f"is corrupt or not a checkpoint ({problem})") from None
        if owner != self._owner:
            theirs = f"driver {owner['driverName']} on node {owner['nodeName']}"
            raise self._refusal(content, f"belongs to {theirs}")
        return records, boot_id

    def _refusal(self, content: bytes, reason: str) -> CheckpointError:
        return CheckpointError(
            f"the checkpoint {self.path} {reason}. It records which devices containers of this "
            "node use, so it is neither used nor overwritten. Start the driver that wrote it, or "
            f"drain the node, move the file away and start again{self._keep_aside(content)}"
        )

    def _keep_aside(self, content: bytes) -> str:
        """Copy a refused checkpoint, once for each content however often the driver restarts.

        Returns what to say of the copy.
        """
        name = f"{FILE_NAME}.refused-{hashlib.sha256(content).hexdigest()[:12]}"
        copy = self.path.with_name(name)
        try:
            if not copy.exists():
                write_atomic(
                    copy, content, durable=self._durable, mode=0o600, fault_prefix="refused"
                )
        except OSError as error:
            return f" (a copy could not be kept: {error})"
        return f" (a copy is kept in {copy})"
