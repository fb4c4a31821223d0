"""Generates the committed messages from the protos: ``python -m kube.kubelet.generate``."""

from __future__ import annotations

import sys
from pathlib import Path


def main() -> int:
    """Write ``*_pb2.py`` and ``*_pb2.pyi`` beside each proto; 2 without grpcio-tools."""
    try:
        from grpc_tools import protoc  # type: ignore[import-untyped,unused-ignore]
    except ImportError:
        print("grpcio-tools is not installed: pip install 'grpcio-tools>=1.80,<2'", file=sys.stderr)
        return 2
    here = Path(__file__).resolve().parent
    root = here.parent.parent
    protos = sorted(str(path.relative_to(root)) for path in here.glob("*.proto"))
    arguments = [f"-I{root}", f"--python_out={root}", f"--pyi_out={root}"]
    return int(protoc.main(["protoc", *arguments, *protos]))


if __name__ == "__main__":
    sys.exit(main())
