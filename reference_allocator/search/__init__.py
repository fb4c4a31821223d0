"""The search for devices: depth-first, the first solution wins, hopeless subtrees are left out."""
