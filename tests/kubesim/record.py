"""Records what a real API server answers to the requests in refusals.json.

``python -m tests.kubesim.record https://127.0.0.1:6443 TOKEN-FILE`` against a throw-away
cluster with all API versions of resource.k8s.io on. It creates one namespace and nothing else, for
every request is one that must be refused. A new one is added to the file without an answer.
"""

from __future__ import annotations

import json
import ssl
import sys
import urllib.error
import urllib.request
from pathlib import Path
from typing import Any

from kubesim.resources import KINDS

NAMESPACE = "refusals"
FILE = Path(__file__).with_name("refusals.json")
CASES: dict[str, dict[str, Any]] = json.loads(FILE.read_text(encoding="utf-8"))
"""Requests that an API server refuses, one for each rule that the reference has to know."""


def post(server: str, token: str, obj: dict[str, Any]) -> dict[str, Any]:
    kind = KINDS.get(obj["kind"])
    plural = kind.plural if kind else f"{obj['kind'].lower()}s"
    version = obj["apiVersion"]
    prefix = f"/apis/{version}" if "/" in version else f"/api/{version}"
    place = ""
    if kind is not None and kind.namespaced:
        place = f"/namespaces/{obj['metadata'].get('namespace', NAMESPACE)}"
    call = urllib.request.Request(
        f"{server}{prefix}{place}/{plural}?fieldValidation=Strict",
        data=json.dumps(obj).encode(),
        headers={"Content-Type": "application/json", "Authorization": f"Bearer {token}"},
    )
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        with urllib.request.urlopen(call, context=context) as answer:
            return {"code": answer.status, "accepted": True}
    except urllib.error.HTTPError as error:
        text = error.read().decode()
        if not text.startswith("{"):
            return {"code": error.code, "reason": "NotFound", "message": text.strip()}
        status = json.loads(text)
        return {
            "code": status["code"],
            "reason": status["reason"],
            "message": status["message"],
            "causes": (status.get("details") or {}).get("causes", []),
        }


def main() -> None:
    server, token = sys.argv[1], Path(sys.argv[2]).read_text(encoding="utf-8").strip()
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}}
    post(server, token, namespace)
    for case in CASES.values():
        case["answer"] = post(server, token, case["request"])
    rows = ",\n".join(
        f"{json.dumps(name)}: {{\n"
        f'"request": {json.dumps(case["request"])},\n"answer": {json.dumps(case["answer"])}}}'
        for name, case in CASES.items()
    )
    FILE.write_text(f"{{\n{rows}\n}}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
