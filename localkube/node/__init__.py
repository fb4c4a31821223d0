"""One node: its namespaces, network, control groups, containerd and kubelet."""
