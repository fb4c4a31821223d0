"""The match of devices and requests, whatever else is allocated."""
