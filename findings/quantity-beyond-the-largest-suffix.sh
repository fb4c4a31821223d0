#!/usr/bin/env bash
# Question: a device has more of a capacity than 999E, say 2000E. A client reads the ResourceSlice and writes it again.
#   How much does the device have then?
# Expected: as much as before, written in another way if need be (2e21).
# Versions: k8s.io/apimachinery v0.37.2 and v0.38.0-beta.0.
# Happens: v0.37.2 has no suffix for 10^21 and leaves the power of ten out: the amount is written as "2", though as a number it
#   was right until then. The same amount as "2e21" stays what it is. v0.38.0-beta.0 writes "2e21" for all of them.
set -euo pipefail
folder=$(mktemp -d)
trap 'chmod -R u+w "$folder"; rm -rf "$folder"' EXIT
export GOTOOLCHAIN=auto GOFLAGS=-mod=mod
ask() { # version
    mkdir "$folder/$1" && cd "$folder/$1"
    cat >main.go <<'GO'
package main

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/api/resource"
)

func main() {
	for _, text := range []string{"2000E", "2000000P", "2e21"} {
		published := resource.MustParse(text)
		written, err := json.Marshal(published)
		if err != nil {
			panic(err)
		}
		var again resource.Quantity
		if err := json.Unmarshal(written, &again); err != nil {
			panic(err)
		}
		fmt.Println(text, string(written), published.Cmp(again))
	}
}
GO
    go mod init slice >/dev/null 2>&1
    go get "k8s.io/apimachinery@$1" >/dev/null 2>&1
    go run .
}
diff <(ask v0.37.2) - <<'TEXT'
2000E "2" 1
2000000P "2" 1
2e21 "2e21" 0
TEXT
diff <(ask v0.38.0-beta.0) - <<'TEXT'
2000E "2e21" 0
2000000P "2e21" 0
2e21 "2e21" 0
TEXT
