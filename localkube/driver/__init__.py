"""DRA drivers beside the kubelets: how they are started, and when they are attached."""
