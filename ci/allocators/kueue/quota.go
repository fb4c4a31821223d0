package main

import (
	"context"
	"maps"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

// deviceID names a device of the cluster.
type deviceID struct{ driver, pool, device string }

// devicesOf is the published devices that a node can use, of the newest generation of each pool.
func devicesOf(node *corev1.Node, slices []*resourcev1.ResourceSlice) map[deviceID]resourcev1.Device {
	type poolID struct{ driver, pool string }
	found, newest := map[deviceID]resourcev1.Device{}, map[poolID]int64{}
	for _, slice := range slices {
		spec := slice.Spec
		forAll := isFor(node, spec.NodeName, spec.AllNodes, spec.NodeSelector)
		perDevice := spec.PerDeviceNodeSelection != nil && *spec.PerDeviceNodeSelection
		id := poolID{spec.Driver, spec.Pool.Name}
		if !forAll && !perDevice || spec.Pool.Generation < newest[id] {
			continue
		}
		if spec.Pool.Generation > newest[id] {
			newest[id] = spec.Pool.Generation
			maps.DeleteFunc(found, func(device deviceID, _ resourcev1.Device) bool {
				return device.driver == id.driver && device.pool == id.pool
			})
		}
		for _, device := range spec.Devices {
			if forAll || isFor(node, device.NodeName, device.AllNodes, device.NodeSelector) {
				found[deviceID{spec.Driver, spec.Pool.Name, device.Name}] = device
			}
		}
	}
	return found
}

func isFor(node *corev1.Node, name *string, all *bool, selector *corev1.NodeSelector) bool {
	if selector != nil {
		parsed, err := nodeaffinity.NewNodeSelector(selector)
		return err == nil && parsed.Match(node)
	}
	return all != nil && *all || name != nil && *name == node.Name
}

// countDevices is how many of the devices a class selects.
func countDevices(ctx context.Context, class *resourcev1.DeviceClass, devices map[deviceID]resourcev1.Device) (count int64) {
	for id, device := range devices {
		if selects(ctx, class, id.driver, device) {
			count++
		}
	}
	return count
}

func selects(ctx context.Context, class *resourcev1.DeviceClass, driver string, device resourcev1.Device) bool {
	compiler := dracel.GetCompiler(dracel.Features{EnableConsumableCapacity: true, EnableListTypeAttributes: true})
	input := dracel.Device{
		Driver:                   driver,
		AllowMultipleAllocations: device.AllowMultipleAllocations,
		Attributes:               device.Attributes,
		Capacity:                 device.Capacity,
	}
	for _, selector := range class.Spec.Selectors {
		compiled := compiler.CompileCELExpression(selector.CEL.Expression, dracel.Options{})
		if compiled.Error != nil {
			return false
		}
		if matches, _, err := compiled.DeviceMatches(ctx, input); err != nil || !matches {
			return false
		}
	}
	return true
}
