//go:build !inner

package main

import (
	"context"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

// Until 1.37 the allocator reads the API's own types.

type sharedID = structured.SharedDeviceID

func makeSharedID(id structured.DeviceID, share *types.UID) sharedID {
	return structured.MakeSharedDeviceID(id, share)
}

func newAllocator(features structured.Features, state structured.AllocatedState, classes classLister, slices []*resourceapi.ResourceSlice, cache *dracel.Cache) (structured.Allocator, error) {
	return structured.NewAllocator(context.Background(), features, state, classes, slices, cache)
}
