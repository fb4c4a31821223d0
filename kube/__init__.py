"""Kubernetes' interfaces: its API as values and as a server, CDI, the kubelet's gRPC services.

Below all other houses of the repository. Everything that asks an API server something does it with
this: the sources of clusters before a run, the cluster target during one, ``cleanup`` after it.
"""
