module dra-conformance.dev/vectors

go 1.24
