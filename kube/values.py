"""The Kubernetes API as values: objects and what names them."""

from __future__ import annotations

from typing import Any

Obj = dict[str, Any]
"""One Kubernetes object, or a part of one, as JSON."""
