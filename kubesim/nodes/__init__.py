"""What runs on a node: the kubelet, the driver, and (as a model) containers."""
