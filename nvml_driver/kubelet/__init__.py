"""The kubelet's side: two gRPC servers, registration, rolling updates."""
