"""The seam: what scenarios may ask of a target, and the values that both targets share."""
