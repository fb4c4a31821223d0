//go:build !minor134

package main

import "k8s.io/dynamic-resource-allocation/structured"

var errOnNode = structured.ErrFailedAllocationOnNode

// chooseAllocator forces an implementation; without a name upstream chooses by features.
func chooseAllocator(name string) error {
	if name == "" {
		structured.EnableAllocators()
	} else {
		structured.EnableAllocators(name)
	}
	return nil
}
