// Command kueue answers questions of allocation/v1 (docs/allocators.md) with Kueue's counting of
// claims: whether it admits a workload of one pod.
//
// Kueue chooses no devices. It counts those that the claims of a workload ask for by class, looks
// whether the cluster has as many that their selectors match, and admits the workload if the quota
// of a queue has as many left. What an administrator does is done here: the queue is for one node,
// each class is a resource with the name of the class, and its quota is the number of devices of the
// node that the class selects. All else is Kueue's, with its gates as they are by default.
package main

import (
	"context"
	"fmt"
	"os"

	"dra-conformance.dev/allocators/contract"
)

func main() {
	err := contract.Serve(func(q *contract.Question) contract.Answer { return respond(context.Background(), q) })
	if err != nil {
		fmt.Fprintln(os.Stderr, "kueue:", err)
		os.Exit(1)
	}
}
