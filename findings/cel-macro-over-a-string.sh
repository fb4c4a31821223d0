#!/usr/bin/env bash
# Question: a device selector asks something of every element of an attribute that turns out to be a string. Is that an
#   error, also if the string is empty?
# Expected: an error in every version: a string has no elements, whatever its length.
# Versions: github.com/google/cel-go v0.29.2, cel.dev/cel-go v0.33.2.
# Happens: v0.29.2 gives an error for both. v0.33.2 gives one for "a100"; for "" all() is true and exists() is false, so
#   that a selector which fails on one device silently takes, or leaves, another one whose attribute is empty.
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
ask() { # module version
    mkdir "$folder/$2" && cd "$folder/$2"
    cat >main.go <<GO
package main

import (
	"fmt"

	"$1/cel"
)

func main() {
	env, err := cel.NewEnv(cel.Variable("model", cel.DynType))
	if err != nil {
		panic(err)
	}
	for _, expression := range []string{"model.all(c, false)", "model.exists(c, true)"} {
		parsed, issues := env.Compile(expression)
		if issues.Err() != nil {
			panic(issues.Err())
		}
		program, err := env.Program(parsed)
		if err != nil {
			panic(err)
		}
		for _, model := range []string{"", "a100"} {
			value, _, err := program.Eval(map[string]any{"model": model})
			fmt.Printf("%s of %q: %v, error: %v\n", expression, model, value, err)
		}
	}
}
GO
    go mod init example.com/ask >/dev/null 2>&1
    go get "$1@$2" >/dev/null 2>&1
    go mod tidy >/dev/null 2>&1
    go run .
}
older=$(ask github.com/google/cel-go v0.29.2)
newer=$(ask cel.dev/cel-go v0.33.2)
printf 'v0.29.2\n%s\n\nv0.33.2\n%s\n' "$older" "$newer"
[ "$(grep -c 'expected iterable type$' <<<"$older")" = 4 ]
[ "$(grep -c 'expected iterable type$' <<<"$newer")" = 2 ]
grep -qxF 'model.all(c, false) of "": true, error: <nil>' <<<"$newer"
grep -qxF 'model.exists(c, true) of "": false, error: <nil>' <<<"$newer"
