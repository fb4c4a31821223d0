"""The four servers of the control plane, and the credentials of all who talk to them."""
