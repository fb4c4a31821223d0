//go:build !inner

package main

import (
	"context"

	"github.com/google/cel-go/cel"

	resourceapi "k8s.io/api/resource/v1"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

// deriver is what compiled expressions are in 1.37.
type deriver interface {
	EvaluateDerivedAttribute(context.Context, dracel.Device) (*resourceapi.DeviceAttribute, *cel.EvalDetails, error)
}

// visible is a device as expressions see it. Until 1.37 they read the API's own types.
func visible(in device, _ bool) (dracel.Device, error) {
	return dracel.Device{
		Driver:                   in.Driver,
		AllowMultipleAllocations: in.AllowMultipleAllocations,
		Attributes:               in.Attributes,
		Capacity:                 in.Capacity,
	}, nil
}

// derive evaluates a derived attribute, and says what that cost.
func derive(compiled dracel.CompilationResult, input dracel.Device) (*resourceapi.DeviceAttribute, *uint64, error) {
	attribute, details, err := any(compiled).(deriver).EvaluateDerivedAttribute(context.Background(), input)
	if details == nil {
		return attribute, nil, err
	}
	return attribute, details.ActualCost(), err
}
