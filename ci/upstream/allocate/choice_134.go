//go:build minor134

package main

import "errors"

// In 1.34 no error is of one node alone, so nothing is this one.
var errOnNode = errors.New("an error of one node")

// chooseAllocator cannot force an implementation in 1.34, which always chooses by features.
func chooseAllocator(name string) error {
	if name != "" {
		return errors.New("allocator: 1.34 chooses by features")
	}
	return nil
}
