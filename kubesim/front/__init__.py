"""The reference's API server over HTTPS: for kubectl, client-go, and drivers."""
