// Command karpenter answers questions of allocation/v1 (docs/allocators.md) with Karpenter's own DRA
// allocator.
//
// Each node of a question is asked for on its own, as a fresh allocator of one provisioning loop
// would be: with place "template" as a node that does not exist yet, whose slices are the templates
// of its instance type, else as one that is in the cluster and initialized. Nothing here decides
// anything.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"time"

	"dra-conformance.dev/allocators/contract"
)

func main() {
	timeout := flag.Duration("timeout", 10*time.Second, "how long one node may take; Karpenter itself stops after 5s")
	flag.Parse()
	err := contract.Serve(func(q *contract.Question) contract.Answer {
		return respond(context.Background(), q, *timeout)
	})
	if err != nil {
		fmt.Fprintln(os.Stderr, "karpenter:", err)
		os.Exit(1)
	}
}
