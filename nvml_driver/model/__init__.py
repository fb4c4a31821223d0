"""Plain values that every part of the driver shares: devices, what is prepared, which files."""
