"""What is wrong in Kubernetes manifests, in scenarios and elsewhere."""
