"""What is wrong with which GPU, and whom it is told: taints, slices, the kubelet."""
