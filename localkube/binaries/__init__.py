"""The programs of a local cluster: their versions, their builds, and the images of its pods."""
