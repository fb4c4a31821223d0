"""Files that survive a crash at any point, and the node's lock."""
