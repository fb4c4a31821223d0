//go:build !minor134

package main

import (
	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/dynamic-resource-allocation/deviceclass/extendedresourcecache"
	"k8s.io/klog/v2"
)

// classByResource says which class provides a resource; empty: none does.
func classByResource(classes []*resourceapi.DeviceClass) func(v1.ResourceName) string {
	cache := extendedresourcecache.NewExtendedResourceCache(klog.Background())
	for _, class := range classes {
		cache.OnAdd(class, true)
	}
	return func(name v1.ResourceName) string {
		if class := cache.GetDeviceClass(name); class != nil {
			return class.Name
		}
		return ""
	}
}
