"""How CDI specs are read, held against the library of container runtimes."""
