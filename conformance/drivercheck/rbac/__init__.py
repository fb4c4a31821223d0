"""What a driver asks of the API server: what its vendor's roles allow, and the least it needs."""
