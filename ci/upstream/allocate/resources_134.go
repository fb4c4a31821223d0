//go:build minor134

package main

import (
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
)

// classByResource is nil: the module of 1.34 does not have it.
func classByResource([]*resourceapi.DeviceClass) func(v1.ResourceName) string { return nil }
