//go:build inner

package main

import (
	"context"

	resourceapi "k8s.io/api/resource/v1"
	draapi "k8s.io/dynamic-resource-allocation/api"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

// visible is a device as expressions see it: since 1.38, as the scheduler's own type.
func visible(in device, derived bool) (dracel.Device, error) {
	var slice draapi.ResourceSlice
	if err := draapi.Convert_v1_ResourceSlice_To_api_ResourceSlice(&resourceapi.ResourceSlice{Spec: resourceapi.ResourceSliceSpec{
		Driver:  in.Driver,
		Devices: []resourceapi.Device{{Name: "d", Attributes: in.Attributes, Capacity: in.Capacity}},
	}}, &slice, nil); err != nil {
		return dracel.Device{}, err
	}
	out := dracel.Device{
		Driver:                   in.Driver,
		AllowMultipleAllocations: in.AllowMultipleAllocations,
		Attributes:               slice.Spec.Devices[0].Attributes,
		Capacity:                 slice.Spec.Devices[0].Capacity,
		LookupUniqueString:       slice.LookupUniqueString,
	}
	if derived {
		out.LookupUniqueString = draapi.MakeUniqueString
	}
	return out, nil
}

// derive evaluates a derived attribute, says what that cost, and turns the result back into the API's type.
func derive(compiled dracel.CompilationResult, input dracel.Device) (*resourceapi.DeviceAttribute, *uint64, error) {
	attribute, details, err := compiled.EvaluateDerivedAttribute(context.Background(), input)
	var cost *uint64
	if details != nil {
		cost = details.ActualCost()
	}
	if err != nil {
		return nil, cost, err
	}
	id := draapi.MakeUniqueString("x")
	domain := draapi.MakeUniqueString("d.example.com")
	named := draapi.DeviceAttributes{DriverName: domain, Nested: map[draapi.UniqueString]map[draapi.UniqueString]any{domain: {id: attribute}}}
	var back map[resourceapi.QualifiedName]resourceapi.DeviceAttribute
	if err := draapi.Convert_api_DeviceAttributes_To_Map_v1_QualifiedName_To_v1_DeviceAttribute(&named, &back, nil); err != nil {
		return nil, cost, err
	}
	value := back["x"]
	return &value, cost, nil
}
