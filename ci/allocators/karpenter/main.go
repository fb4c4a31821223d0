// Command karpenter answers questions of allocation/v1 (docs/allocators.md) with Karpenter's own DRA
// allocator.
//
// Each node of a question is asked for on its own, as a fresh allocator of one provisioning loop
// would be: with place "template" as a node that does not exist yet, whose slices are the templates
// of its instance type, else as one that is in the cluster and initialized. Nothing here decides
// anything.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"time"
)

func run(timeout time.Duration) error {
	reader := bufio.NewReaderSize(os.Stdin, 1<<20)
	writer := bufio.NewWriter(os.Stdout)
	defer writer.Flush()
	encoder := json.NewEncoder(writer)
	encoder.SetEscapeHTML(false)
	for {
		line, err := reader.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			if err := encoder.Encode(respond(context.Background(), line, timeout)); err != nil {
				return err
			}
			if err := writer.Flush(); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func main() {
	timeout := flag.Duration("timeout", 10*time.Second, "how long one node may take; Karpenter itself stops after 5s")
	flag.Parse()
	if err := run(*timeout); err != nil {
		fmt.Fprintln(os.Stderr, "karpenter:", err)
		os.Exit(1)
	}
}
