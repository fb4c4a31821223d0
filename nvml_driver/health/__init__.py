"""What is wrong with which GPU, and who is informed: taints, slices, the kubelet."""
