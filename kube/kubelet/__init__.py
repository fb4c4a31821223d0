"""The kubelet's gRPC interfaces: our protos and what is generated from them.

Only the wire matters between a kubelet and a plugin: package, service, message field numbers. The
protos here say the same as those of ``k8s.io/kubelet`` v0.37.1 in our own words, each in a file of
its own name (``dra_v1.proto``), because protobuf refuses two files called ``api.proto`` in one
process. Services are served and called by :mod:`kube.kubelet.rpc`.

The messages are committed, so that nobody needs a compiler at run time. After a change of a proto::

    python -m kube.kubelet.generate

which needs ``grpcio-tools`` no newer than the oldest protobuf runtime that pyproject.toml allows
(protobuf refuses messages that are newer than its runtime).
"""
