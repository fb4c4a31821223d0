//go:build inner

package main

import (
	"context"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	draapi "k8s.io/dynamic-resource-allocation/api"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

// Since 1.38 the allocator reads slices as the scheduler keeps them, and knows shared devices without
// their shares.

type sharedID = structured.DeviceID

func makeSharedID(id structured.DeviceID, _ *types.UID) sharedID { return id }

func newAllocator(features structured.Features, state structured.AllocatedState, classes classLister, slices []*resourceapi.ResourceSlice, cache *dracel.Cache) (structured.Allocator, error) {
	var converted []*draapi.ResourceSlice
	for _, in := range slices {
		out := new(draapi.ResourceSlice)
		if err := draapi.Convert_v1_ResourceSlice_To_api_ResourceSlice(in, out, nil); err != nil {
			return nil, err
		}
		converted = append(converted, out)
	}
	return structured.NewAllocator(context.Background(), features, state, classes, converted, cache)
}
