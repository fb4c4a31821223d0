"""Opening a target: from options to a reference or a cluster that scenarios can run on."""
