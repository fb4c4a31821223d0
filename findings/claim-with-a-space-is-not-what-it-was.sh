#!/usr/bin/env bash
# Question: a ResourceClaim has opaque parameters with a space, as Python's json.dumps writes them. A client reads the
#   claim and puts it back as it is. Is the spec, which is immutable, the same?
# Expected: yes. Parameters are JSON, and white space means nothing in JSON.
# Versions: k8s.io/api v0.37.1, k8s.io/apimachinery v0.37.1.
# Happens: RawExtension keeps the bytes that it was given, and loses the spaces when it is written. What was stored from
#   the first request and what comes back differ for equality.Semantic, by which immutability is judged. (A kube-apiserver
#   1.37.1 answers 422 "field is immutable" to that PUT, and to a merge patch that only adds a label.)
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
cd "$folder"
cat >main.go <<'GO'
package main

import (
	"encoding/json"
	"fmt"
	"os"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/equality"
)

func decode(text []byte) *resourceapi.ResourceClaim {
	claim := &resourceapi.ResourceClaim{}
	if err := json.Unmarshal(text, claim); err != nil {
		panic(err)
	}
	return claim
}

func main() {
	same := map[string]bool{}
	for _, parameters := range []string{`{"a":1}`, `{"a": 1}`} {
		sent := decode([]byte(`{"spec": {"devices": {"config": [{"opaque": {"driver": "d.example.com", "parameters": ` +
			parameters + `}}]}}}`))
		answered, err := json.Marshal(sent)
		if err != nil {
			panic(err)
		}
		same[parameters] = equality.Semantic.DeepEqual(sent.Spec, decode(answered).Spec)
		fmt.Printf("parameters %s: put back as it was answered, the spec is equal: %t\n", parameters, same[parameters])
	}
	if !same[`{"a":1}`] || same[`{"a": 1}`] {
		fmt.Println("this has changed")
		os.Exit(1)
	}
}
GO
go mod init example.com/claim >/dev/null 2>&1
go get k8s.io/api@v0.37.1 k8s.io/apimachinery@v0.37.1 >/dev/null 2>&1
go mod tidy >/dev/null 2>&1
go run .
