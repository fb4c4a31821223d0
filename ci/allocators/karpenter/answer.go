package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"
	"unique"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"dra-conformance.dev/allocators/contract"
	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/dynamicresources/deviceallocation"
	"sigs.k8s.io/karpenter/pkg/scheduling"
	"sigs.k8s.io/karpenter/pkg/scheduling/dynamicresources"
)

// store is all that Karpenter reads from the API server for these questions.
type store struct {
	client.Client
	classes map[string]*resourcev1.DeviceClass
	claims  []*resourcev1.ResourceClaim
}

func (s store) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch into := into.(type) {
	case *resourcev1.DeviceClass:
		if class, ok := s.classes[key.Name]; ok {
			class.DeepCopyInto(into)
			return nil
		}
		return apierrors.NewNotFound(schema.GroupResource{Group: "resource.k8s.io", Resource: "deviceclasses"}, key.Name)
	}
	return fmt.Errorf("unexpected read of %T %s", into, key)
}

func (s store) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	switch into := into.(type) {
	case *resourcev1.ResourceClaimList:
		for _, claim := range s.claims {
			into.Items = append(into.Items, *claim)
		}
		return nil
	}
	return fmt.Errorf("unexpected list of %T", into)
}

// place is one node, or one to be, for the allocator.
type place struct {
	node      *corev1.Node
	existing  bool
	types     []dynamicresources.InstanceTypeID
	templates map[dynamicresources.InstanceTypeID][]dynamicresources.ResourceSlice
}

func (p place) ID() dynamicresources.NodeClaimID { return unique.Make("nodeclaim/" + p.node.Name) }
func (p place) NodeName() string {
	if p.existing {
		return p.node.Name
	}
	return ""
}
func (p place) NodePoolID() dynamicresources.NodePoolID { return unique.Make("default") }
func (p place) Requirements() scheduling.Requirements {
	return scheduling.NewLabelRequirements(p.node.Labels)
}
func (p place) InstanceTypes() []dynamicresources.InstanceTypeID { return p.types }
func (p place) ResourceSlices() map[dynamicresources.InstanceTypeID][]dynamicresources.ResourceSlice {
	return p.templates
}

func respond(ctx context.Context, q *contract.Question, timeout time.Duration) contract.Answer {
	out := contract.Answer{ID: q.ID}
	kube := store{classes: map[string]*resourcev1.DeviceClass{}, claims: q.Allocated}
	for _, pod := range q.Pods() {
		if pod.Pod != nil {
			out.Unsupported = "extended resources of classes"
			return out
		}
		for _, claim := range pod.Claims {
			if claim.Status.Allocation != nil {
				kube.claims = append(kube.claims, claim)
			}
		}
	}
	for _, class := range q.DeviceClasses {
		kube.classes[class.Name] = class
	}
	for _, node := range q.Nodes {
		out.Nodes = append(out.Nodes, decide(ctx, q, kube, node, timeout))
	}
	return out
}

// inUse tells the allocator what Karpenter's controller of allocated devices knows, for a cluster
// in which no pod is being deleted.
func inUse(ctx context.Context, kube store) (dynamicresources.AllocatedDeviceState, error) {
	state := dynamicresources.AllocatedDeviceState{
		ExclusiveDevices: sets.New[cloudprovider.DeviceID](),
		ConsumedCapacity: map[cloudprovider.DeviceID]map[resourcev1.QualifiedName]resource.Quantity{},
	}
	controller := deviceallocation.NewController(kube)
	controller.Hydrate(ctx)
	devices, err := controller.AllocatedDevices(ctx)
	if err != nil {
		return state, err
	}
	for id, meta := range devices {
		switch {
		case meta.Releasable && len(meta.PodUIDs) == 0:
		case !meta.Shared:
			state.ExclusiveDevices.Insert(id)
		case len(meta.ConsumedCapacity) > 0:
			state.ConsumedCapacity[id] = meta.ConsumedCapacity
		}
	}
	return state, nil
}

func decide(ctx context.Context, q *contract.Question, kube store, node *corev1.Node, timeout time.Duration) (out contract.NodeAnswer) {
	out.Node = node.Name
	defer func() {
		if r := recover(); r != nil {
			out.Outcome, out.Error = "error", fmt.Sprintf("panic: %v", r)
		}
	}()
	where := place{node: node, existing: q.Place != "template", types: []dynamicresources.InstanceTypeID{unique.Make("type-0")}}
	where.templates = map[dynamicresources.InstanceTypeID][]dynamicresources.ResourceSlice{}
	var published []dynamicresources.ResourceSlice
	for _, slice := range q.Slices {
		if !where.existing && slice.Spec.NodeName != nil && *slice.Spec.NodeName == node.Name {
			for _, id := range where.types {
				where.templates[id] = append(where.templates[id], dynamicresources.NewTemplateSlice(template(slice)))
			}
			continue
		}
		published = append(published, dynamicresources.NewAPIServerSlice(slice))
	}
	state, err := inUse(ctx, kube)
	if err != nil {
		out.Outcome, out.Error = "error", err.Error()
		return out
	}
	allocator := dynamicresources.NewAllocator(published, state, nil, kube, nil)
	for range max(q.Repeat, 1) - 1 {
		_, _, elapsed := allocate(ctx, allocator, where, q.Claims, timeout)
		if out.Nanoseconds == 0 || elapsed < out.Nanoseconds {
			out.Nanoseconds = elapsed
		}
	}
	for i, pod := range q.Pods() {
		one, result, elapsed := allocate(ctx, allocator, where, pod.Claims, timeout)
		if one.Outcome == "allocated" && result.Allocation != nil {
			result.Allocation.Commit(ctx) // as a provisioning loop does before the next pod
		}
		if one.Outcome == "allocated" {
			for _, claim := range pod.Claims {
				one.Allocations = append(one.Allocations, picked(allocator, claim, where.types[0]))
			}
		}
		if i > 0 {
			out.Following = append(out.Following, one)
			continue
		}
		out.PodAnswer = one
		if out.Nanoseconds == 0 || elapsed < out.Nanoseconds {
			out.Nanoseconds = elapsed
		}
	}
	return out
}

// allocate decides for one pod, and says how many nanoseconds that took; its deadline is made before.
func allocate(ctx context.Context, allocator *dynamicresources.Allocator, where place, claims []*resourcev1.ResourceClaim, timeout time.Duration) (out contract.PodAnswer, result *dynamicresources.AllocationResult, nanoseconds int64) {
	within, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	start := time.Now()
	result, err := allocator.Allocate(within, where, claims)
	elapsed := time.Since(start)
	switch {
	case err == nil:
		out.Outcome = "allocated"
	case elapsed >= min(timeout, 5*time.Second), errors.Is(err, context.DeadlineExceeded):
		out.Outcome, out.Error = "timeout", err.Error()
	case strings.HasPrefix(err.Error(), "no instance type can satisfy"):
		out.Outcome = "none"
	default:
		out.Outcome, out.Error = "error", err.Error()
	}
	return out, result, elapsed.Nanoseconds()
}

func picked(allocator *dynamicresources.Allocator, claim *resourcev1.ResourceClaim, of dynamicresources.InstanceTypeID) resourcev1.AllocationResult {
	var out resourcev1.AllocationResult
	meta := allocator.ResourceClaimAllocationMetadataForClaim(types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name})
	if meta == nil {
		return out
	}
	for _, device := range meta.Devices[of] {
		out.Devices.Results = append(out.Devices.Results, resourcev1.DeviceRequestAllocationResult{
			Request:          device.RequestName.String(),
			Driver:           device.DeviceID.Driver.Value(),
			Pool:             device.DeviceID.Pool.Value(),
			Device:           device.DeviceID.Device.Value(),
			ConsumedCapacity: device.ConsumedCapacity,
		})
	}
	return out
}

// template is the slice as a cloud provider would describe it before the node exists.
func template(slice *resourcev1.ResourceSlice) *cloudprovider.ResourceSliceTemplate {
	out := &cloudprovider.ResourceSliceTemplate{
		Driver:         unique.Make(slice.Spec.Driver),
		Pool:           cloudprovider.ResourcePool{Name: unique.Make(slice.Spec.Pool.Name)},
		SharedCounters: slice.Spec.SharedCounters,
	}
	for _, device := range slice.Spec.Devices {
		out.Devices = append(out.Devices, cloudprovider.Device{
			Name:                     unique.Make(device.Name),
			Attributes:               device.Attributes,
			Capacity:                 device.Capacity,
			AllowMultipleAllocations: device.AllowMultipleAllocations != nil && *device.AllowMultipleAllocations,
			ConsumesCounters:         device.ConsumesCounters,
		})
	}
	return out
}
