"""JSON of objects as an API server answers them, encoded once for all who ask.

Lists, answers to writes and events of watches hold the same objects again and again. What the store
has at a revision never changes, so that the revision and the version that is asked for name a text.
"""

from __future__ import annotations

import json
import threading
from typing import Final

from kube.values import Obj
from kubesim.apiserver.conversion import as_version
from kubesim.goforms import encode_object, load_forms_of

MAX_BYTES: Final = 96 << 20
"""How many bytes of texts are kept: of some 10,000 slices and 20,000 claims."""
_OVERHEAD_BYTES: Final = 200
"""Of a text's key and its places in memory."""
_TYPE: Final = ("apiVersion", "kind")

dump_json = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":")).encode


class EncodedObjects:
    """Texts of the objects of one store, as long as there is room for them.

    They are kept in two generations: when the younger one has grown to half of the room, it becomes
    the older one, and what of that was not asked for since is forgotten.

    Args:
        kubernetes: the server's minor, for example 1.37.
        max_bytes: how many bytes of texts are kept at most.
    """

    def __init__(self, kubernetes: str, max_bytes: int = MAX_BYTES) -> None:
        self._forms = load_forms_of(kubernetes)
        self._max_bytes = max_bytes
        self._lock = threading.Lock()
        self._young: dict[tuple[str, str], bytes] = {}
        self._old: dict[tuple[str, str], bytes] = {}
        self._young_bytes = 0

    def encode_stored(self, obj: Obj, api_version: str) -> bytes:
        """Return what follows the type of an object in its JSON, up to the last brace.

        ``obj``: what the store has or had at its resourceVersion, in any version.
        """
        key = obj["metadata"]["resourceVersion"], api_version
        text = self._young.get(key)
        if text is None:
            text = self._old.get(key)
            if text is None:
                text = self.encode_other(obj, api_version)
            with self._lock:
                self._young[key] = text
                self._young_bytes += len(text) + _OVERHEAD_BYTES
                if self._young_bytes > self._max_bytes // 2:
                    self._old, self._young, self._young_bytes = self._young, {}, 0
        return text

    def encode_other(self, obj: Obj, api_version: str) -> bytes:
        """Return the same of an object that was not stored so."""
        encoded = encode_object(as_version(obj, api_version), self._forms)
        members = {field: value for field, value in encoded.items() if field not in _TYPE}
        return dump_json(members)[1:].encode()


def write_type(kind: str, api_version: str) -> bytes:
    """Return the beginning of an object's JSON, which what `EncodedObjects` gives follows."""
    return f'{{"kind":"{kind}","apiVersion":"{api_version}",'.encode()
