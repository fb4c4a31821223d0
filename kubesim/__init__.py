"""A Kubernetes in this process: API server, scheduler, controllers and kubelets."""
