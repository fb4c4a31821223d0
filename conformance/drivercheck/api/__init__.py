"""The API server that the driver talks to: the reference's, over HTTP on loopback."""
