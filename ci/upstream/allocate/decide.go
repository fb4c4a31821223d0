package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	dracel "k8s.io/dynamic-resource-allocation/cel"
	"k8s.io/dynamic-resource-allocation/structured"
)

// celCacheSize is that of the scheduler plugin (dynamicresources.go).
const celCacheSize = 10

// shareID stands for every generated one: they are random, and answers must be comparable.
const shareID types.UID = "aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa"

type classLister map[string]*resourceapi.DeviceClass

func (l classLister) List() ([]*resourceapi.DeviceClass, error) {
	var all []*resourceapi.DeviceClass
	for _, class := range l {
		all = append(all, class)
	}
	return all, nil
}

func (l classLister) Get(name string) (*resourceapi.DeviceClass, error) {
	if class, ok := l[name]; ok {
		return class, nil
	}
	return nil, fmt.Errorf("deviceclass.resource.k8s.io %q not found", name)
}

// allocatedState counts devices in use as the scheduler plugin does (foreachAllocatedDevice in
// allocateddevices.go): admin access does not count, shares do only with consumable capacity.
func allocatedState(claims []*resourceapi.ResourceClaim, consumableCapacity bool) structured.AllocatedState {
	state := structured.AllocatedState{
		AllocatedDevices:         sets.New[structured.DeviceID](),
		AllocatedSharedDeviceIDs: sets.New[sharedID](),
		AggregatedCapacity:       structured.NewConsumedCapacityCollection(),
	}
	for _, claim := range claims {
		if claim.Status.Allocation == nil {
			continue
		}
		for _, result := range claim.Status.Allocation.Devices.Results {
			if result.AdminAccess != nil && *result.AdminAccess {
				continue
			}
			id := structured.MakeDeviceID(result.Driver, result.Pool, result.Device)
			if !consumableCapacity || result.ShareID == nil {
				state.AllocatedDevices.Insert(id)
				continue
			}
			state.AllocatedSharedDeviceIDs.Insert(makeSharedID(id, result.ShareID))
			if result.ConsumedCapacity != nil {
				state.AggregatedCapacity.Insert(structured.NewDeviceConsumedCapacity(id, result.ConsumedCapacity))
			}
		}
	}
	return state
}

// allocatedOf is those of the pods' claims that have their devices already, and are in use by them.
func allocatedOf(q question) (given []*resourceapi.ResourceClaim) {
	known := sets.New[types.NamespacedName]()
	for _, claim := range q.Allocated {
		known.Insert(nameOf(claim))
	}
	for _, pod := range q.pods() {
		for _, claim := range pod.Claims {
			if claim.Status.Allocation != nil && !known.Has(nameOf(claim)) {
				known.Insert(nameOf(claim))
				given = append(given, claim)
			}
		}
	}
	return given
}

func nameOf(claim *resourceapi.ResourceClaim) types.NamespacedName {
	return types.NamespacedName{Namespace: claim.Namespace, Name: claim.Name}
}

// allocateClaims does with claims that are allocated what the scheduler plugin does: PreFilter
// leaves them out of what it allocates, and Filter refuses nodes that their selector does not match.
func allocateClaims(ctx context.Context, allocator structured.Allocator, node *v1.Node, claims []*resourceapi.ResourceClaim) ([]resourceapi.AllocationResult, error) {
	results := make([]resourceapi.AllocationResult, len(claims))
	var pending []*resourceapi.ResourceClaim
	for i, claim := range claims {
		if claim.Status.Allocation == nil {
			pending = append(pending, claim)
			continue
		}
		results[i] = *claim.Status.Allocation
		if results[i].NodeSelector == nil {
			continue
		}
		selector, err := nodeaffinity.NewNodeSelector(results[i].NodeSelector)
		if err != nil {
			return nil, err
		}
		if !selector.Match(node) {
			return nil, nil
		}
	}
	if len(pending) == 0 {
		return results, nil
	}
	made, err := allocator.Allocate(ctx, node, pending)
	if err != nil || len(made) != len(pending) {
		return nil, err
	}
	for i, claim := range claims {
		if claim.Status.Allocation == nil {
			results[i], made = made[0], made[1:]
		}
	}
	return results, nil
}

// celFeatures switches those on that this minor has.
func celFeatures(chosen map[string]bool) (out dracel.Features) {
	for name, field := range map[string]string{
		"consumableCapacity": "EnableConsumableCapacity",
		"listTypeAttributes": "EnableListTypeAttributes",
	} {
		if value := reflect.ValueOf(&out).Elem().FieldByName(field); value.IsValid() {
			value.SetBool(chosen[name])
		}
	}
	return out
}

// respond answers a line. One allocator serves all nodes, in order.
func respond(line []byte, timeout time.Duration, defaultAllocator string) answer {
	q, err := decode(line)
	out := answer{ID: q.ID}
	if err != nil {
		out.Invalid = err.Error()
		return out
	}
	features, err := featuresOf(q.Features)
	if err != nil {
		out.Invalid = err.Error()
		return out
	}
	classes := classLister{}
	for _, class := range q.DeviceClasses {
		classes[class.Name] = class
	}
	if err := chooseAllocator(cmp.Or(q.Allocator, defaultAllocator)); err != nil {
		out.Invalid = err.Error()
		return out
	}
	cache := dracel.NewCache(celCacheSize, celFeatures(q.Features))
	makeAllocator := func(claims []*resourceapi.ResourceClaim) (structured.Allocator, error) {
		return newAllocator(features, allocatedState(claims, features.ConsumableCapacity), classes, q.Slices, cache)
	}
	inUse := append(q.Allocated, allocatedOf(q)...)
	allocator, err := makeAllocator(inUse)
	if err != nil {
		out.Unsupported = err.Error()
		return out
	}
	resources, err := newResources(q)
	if err != nil {
		out.Unsupported = err.Error()
		return out
	}
	for _, node := range q.Nodes {
		claims, lacks := resources.claimsOn(node, &q.askedPod)
		on := decide(allocator, node, claims, lacks, max(q.Repeat, 1), timeout)
		on.Node = node.Name
		made := inUse
		last := on.podAnswer
		for i, pod := range q.Following {
			made = append(made[:len(made):len(made)], keep(claims, last, i)...)
			claims, lacks = resources.claimsOn(node, pod)
			claims = withDevices(claims, made)
			next, err := makeAllocator(made)
			if err != nil {
				out.Unsupported = err.Error()
				return out
			}
			last = decide(next, node, claims, lacks, 1, timeout).podAnswer
			on.Following = append(on.Following, last)
		}
		out.Nodes = append(out.Nodes, on)
	}
	return out
}

// keep is the claims of a pod that was given devices, with these.
func keep(claims []*resourceapi.ResourceClaim, given podAnswer, pod int) (kept []*resourceapi.ResourceClaim) {
	for i := range given.Allocations {
		if claims[i].Status.Allocation != nil {
			continue
		}
		claim := claims[i].DeepCopy()
		claim.Status.Allocation = &given.Allocations[i]
		if claim.Name == "" { // made for extended resources
			claim.Name = fmt.Sprintf("<extended-resources>%d", pod)
		}
		kept = append(kept, claim)
	}
	return kept
}

// withDevices is the claims with what pods before were given for them.
func withDevices(claims, made []*resourceapi.ResourceClaim) []*resourceapi.ResourceClaim {
	known := map[types.NamespacedName]*resourceapi.ResourceClaim{}
	for _, claim := range made {
		known[nameOf(claim)] = claim
	}
	out := make([]*resourceapi.ResourceClaim, len(claims))
	for i, claim := range claims {
		out[i] = claim
		if had, ok := known[nameOf(claim)]; ok && claim.Status.Allocation == nil {
			out[i] = had
		}
	}
	return out
}

// decide asks for one node, `repeat` times, and keeps the best time; where the node lacks a resource
// that the pod asks for, there is nothing to decide.
func decide(allocator structured.Allocator, node *v1.Node, claims []*resourceapi.ResourceClaim, lacks bool, repeat int, timeout time.Duration) (out nodeAnswer) {
	if lacks {
		out.Outcome = "none"
		return out
	}
	defer func() {
		if r := recover(); r != nil {
			out.Outcome, out.Error = "error", fmt.Sprintf("panic: %v", r)
		}
	}()
	for i := range repeat {
		before := steps(allocator)
		ctx, cancel := context.WithTimeout(context.Background(), timeout)
		start := time.Now()
		results, err := allocateClaims(ctx, allocator, node, claims)
		elapsed := time.Since(start).Nanoseconds()
		cancel()
		if i == 0 || elapsed < out.Nanoseconds {
			out.Nanoseconds = elapsed
		}
		out.Steps = steps(allocator) - before
		out.Outcome, out.Allocations, out.Error = outcome(results, len(claims), err)
		if out.Outcome == "timeout" {
			break
		}
	}
	return out
}

func outcome(results []resourceapi.AllocationResult, claims int, err error) (string, []resourceapi.AllocationResult, string) {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout", nil, err.Error()
	case errors.Is(err, errOnNode):
		return "nodeError", nil, err.Error()
	case err != nil:
		return "error", nil, err.Error()
	case len(results) != claims || results == nil:
		return "none", nil, ""
	}
	for i := range results {
		devices := results[i].Devices.Results
		for j := range devices {
			if devices[j].ShareID != nil {
				id := shareID
				devices[j].ShareID = &id
			}
		}
	}
	return "allocated", results, ""
}

// steps reads how many partial solutions were looked at. The public interface does not offer that,
// and the type of the statistics is internal.
func steps(allocator structured.Allocator) int64 {
	method := reflect.ValueOf(allocator).MethodByName("GetStats")
	if !method.IsValid() {
		return 0
	}
	return reflect.Indirect(method.Call(nil)[0]).FieldByName("NumAllocateOneInvocations").Int()
}
