"""What `make test` and `make everything` run; `ci/test --help` says how to run a part of it."""
