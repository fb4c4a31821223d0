"""``resourceVersion`` and ``continue`` of lists, as texts that clients hold.

Source: pkg/storage/continue.go and pkg/storage/api_object_versioner.go of k8s.io/apiserver.
"""

from __future__ import annotations

import base64
import binascii
import json
import re

from kube.errors import ApiError
from kube.values import Obj
from kubesim.store import name_of, namespace_of

_BASE64 = re.compile(r"[A-Za-z0-9_-]*")


def parse_revision(text: str, code: int, prefix: str = "") -> int:
    """Return a ``resourceVersion``, 0 for none.

    ``code`` and ``prefix`` of the refusal depend on what is asked for. Raises ApiError.
    """
    if re.fullmatch(r"[0-9]*", text) and int(text or 0) < 1 << 64:
        return int(text or 0)
    why = "value out of range" if re.fullmatch(r"[0-9]+", text) else "invalid syntax"
    parsing = f'strconv.ParseUint: parsing "{text}": {why}'
    message = f'{prefix}resourceVersion: Invalid value: "{text}": {parsing}'
    raise ApiError(code, "BadRequest" if code == 400 else "", message)


def make_token(revision: int, last: Obj) -> str:
    """Return the ``continue`` of a page of a list at a revision that ends with an object."""
    namespace = namespace_of(last)
    start = f"{namespace}/{name_of(last)}\0" if namespace else f"{name_of(last)}\0"
    token = {"v": "meta.k8s.io/v1", "rv": revision, "start": start}
    return base64.urlsafe_b64encode(json.dumps(token).encode()).decode().rstrip("=")


def check_token(token: str) -> None:
    """Check that a ``continue`` is one. Raises ApiError: 400."""
    why = ""
    valid = _BASE64.match(token)
    assert valid is not None  # it may be empty
    if valid.end() < len(token) or len(token) % 4 == 1:
        why = f"illegal base64 data at input byte {min(valid.end(), len(token) // 4 * 4)}"
    else:
        try:
            decoded = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
            if not isinstance(decoded, dict):
                why = "json: cannot unmarshal into Go value of type storage.continueToken"
        except (ValueError, binascii.Error):
            first = base64.urlsafe_b64decode(token + "=" * (-len(token) % 4))[:1]
            character = first.decode("latin-1")
            why = f"invalid character '{character}' looking for beginning of value"
    if why:
        text = f"invalid continue token: continue key is not valid: {why}"
        raise ApiError(400, "BadRequest", text)
