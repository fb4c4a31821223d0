"""What stored objects and manifests lose or get with another Kubernetes minor."""
