package main

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
)

// resources makes the claims for pods' extended resources, as the scheduler plugin does
// (filterExtendedResources and createRequestsAndMappings in extendeddynamicresources.go, which no
// module offers); which class provides which resource is the library's own.
type resources struct {
	classOf func(v1.ResourceName) string
}

// newResources fails where pods ask for what the minor's library does not know.
func newResources(q question) (*resources, error) {
	if !slices.ContainsFunc(q.pods(), func(pod *askedPod) bool { return pod.Pod != nil }) {
		return nil, nil
	}
	classOf := classByResource(q.DeviceClasses)
	if classOf == nil {
		return nil, errors.New("this minor has no library for extended resources")
	}
	return &resources{classOf}, nil
}

// claimsOn is what the pod needs on a node; `lacks` says that it needs what is not there.
func (r *resources) claimsOn(node *v1.Node, pod *askedPod) (claims []*resourceapi.ResourceClaim, lacks bool) {
	if pod.Pod == nil {
		return pod.Claims, false
	}
	init := len(pod.Pod.Spec.InitContainers)
	containers := slices.Concat(pod.Pod.Spec.InitContainers, pod.Pod.Spec.Containers)
	var wanted []v1.ResourceName
	for _, container := range containers {
		for name, amount := range container.Resources.Requests {
			own, has := node.Status.Allocatable[name]
			switch class := r.classOf(name); {
			case amount.IsZero() || !isExtended(name) || slices.Contains(wanted, name):
			case class != "" && own.Value() == 0:
				wanted = append(wanted, name)
			case !has:
				return nil, true
			}
		}
	}
	slices.Sort(wanted)
	var requests []resourceapi.DeviceRequest
	for _, name := range wanted {
		requests = append(requests, requestsFor(containers, init, name, r.classOf(name))...)
	}
	if len(requests) == 0 {
		return pod.Claims, false
	}
	slices.SortFunc(requests, func(a, b resourceapi.DeviceRequest) int { return cmp.Compare(a.Name, b.Name) })
	claim := &resourceapi.ResourceClaim{}
	claim.Spec.Devices.Requests = requests
	return append(slices.Clone(pod.Claims), claim), false
}

// requestsFor is the requests for one resource. A container that ends before others start leaves its
// devices to them, and may have theirs.
func requestsFor(containers []v1.Container, init int, name v1.ResourceName, class string) (requests []resourceapi.DeviceRequest) {
	staying := make([]int64, len(containers))
	add := func(i int, count int64) {
		sorted := slices.Sorted(maps.Keys(containers[i].Resources.Requests))
		requests = append(requests, resourceapi.DeviceRequest{
			Name: fmt.Sprintf("container-%d-request-%d", i, slices.Index(sorted, name)),
			Exactly: &resourceapi.ExactDeviceRequest{
				DeviceClassName: class,
				AllocationMode:  resourceapi.DeviceAllocationModeExactCount,
				Count:           count,
			},
		})
	}
	amount := func(i int) int64 {
		quantity := containers[i].Resources.Requests[name]
		count, _ := quantity.AsInt64()
		return count
	}
	ends := func(i int) bool {
		policy := containers[i].RestartPolicy
		return i < init && (policy == nil || *policy != v1.ContainerRestartPolicyAlways)
	}
	for i := range containers {
		if !ends(i) && amount(i) != 0 {
			staying[i] = amount(i)
			add(i, staying[i])
		}
	}
	most, missing := -1, int64(0)
	for i := range containers {
		if !ends(i) {
			continue
		}
		lacking := amount(i)
		for _, later := range staying[i:] {
			lacking -= later
		}
		if lacking > missing {
			most, missing = i, lacking
		}
	}
	if most >= 0 {
		add(most, missing)
	}
	return requests
}

// isExtended is IsDRAExtendedResourceName, but for names that no API server takes.
func isExtended(name v1.ResourceName) bool {
	text := string(name)
	return strings.HasPrefix(text, resourceapi.ResourceDeviceClassPrefix) ||
		strings.Contains(text, "/") && !strings.Contains(text, "kubernetes.io/") && !strings.HasPrefix(text, "requests.")
}
