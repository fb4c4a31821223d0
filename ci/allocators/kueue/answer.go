package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation/field"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"dra-conformance.dev/allocators/contract"
	configapi "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	schdcache "sigs.k8s.io/kueue/pkg/cache/scheduler"
	"sigs.k8s.io/kueue/pkg/dra"
	"sigs.k8s.io/kueue/pkg/resources"
	utilresource "sigs.k8s.io/kueue/pkg/util/resource"
	"sigs.k8s.io/kueue/pkg/workload"
)

const (
	flavor    kueue.ResourceFlavorReference = "node"
	queueName                               = "queue"
	podSet    kueue.PodSetReference         = "main"
	namespace                               = "default"
)

// store is all that Kueue reads from the API server for these questions: what claims ask for is in
// templates, by the claim's name.
type store struct {
	client.Client
	classes []*resourcev1.DeviceClass
	slices  []*resourcev1.ResourceSlice
	claims  map[string]resourcev1.ResourceClaimSpec
	mapper  *dra.ResourceMapper
}

func (s store) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	switch into := into.(type) {
	case *resourcev1.ResourceClaimTemplate:
		into.Spec.Spec = s.claims[key.Name]
		return nil
	case *resourcev1.DeviceClass:
		if i := slices.IndexFunc(s.classes, func(class *resourcev1.DeviceClass) bool { return class.Name == key.Name }); i >= 0 {
			s.classes[i].DeepCopyInto(into)
			return nil
		}
		return apierrors.NewNotFound(schema.GroupResource{Group: "resource.k8s.io", Resource: "deviceclasses"}, key.Name)
	}
	return fmt.Errorf("unexpected read of %T %s", into, key)
}

// List knows the index that Kueue makes of classes; of what else it lists there is nothing.
func (s store) List(_ context.Context, into client.ObjectList, options ...client.ListOption) error {
	var chosen client.ListOptions
	chosen.ApplyOptions(options)
	switch into := into.(type) {
	case *resourcev1.ResourceSliceList:
		for _, slice := range s.slices {
			into.Items = append(into.Items, *slice)
		}
	case *resourcev1.DeviceClassList:
		wanted, _ := chosen.FieldSelector.RequiresExactMatch("spec.extendedResourceName")
		for _, class := range s.classes {
			if name := class.Spec.ExtendedResourceName; name != nil && *name == wanted {
				into.Items = append(into.Items, *class)
			}
		}
	}
	return nil
}

func respond(ctx context.Context, q *contract.Question) contract.Answer {
	out := contract.Answer{ID: q.ID}
	kube := store{classes: q.DeviceClasses, slices: q.Slices, claims: map[string]resourcev1.ResourceClaimSpec{}}
	if len(q.Following) > 0 {
		// What comes next is judged beside the devices of what came before.
		out.Unsupported = "pods in a row: no devices are chosen"
		return out
	}
	for _, claim := range q.Claims {
		if claim.Status.Allocation != nil {
			out.Unsupported = "claims that are there before their pod"
			return out
		}
		kube.claims[claim.Name] = claim.Spec
	}
	for _, claim := range q.Allocated {
		if why := outsideOfKueue(claim); why != "" {
			out.Unsupported = "devices in use by claims that " + why
			return out
		}
		kube.claims["in-use-"+claim.Name] = claim.Spec
	}
	var mappings []configapi.DeviceClassMapping
	for _, class := range q.DeviceClasses {
		name := corev1.ResourceName(class.Name)
		mappings = append(mappings, configapi.DeviceClassMapping{Name: name, DeviceClassNames: []corev1.ResourceName{name}})
	}
	kube.mapper = dra.NewResourceMapper()
	if err := kube.mapper.PopulateFromConfiguration(mappings); err != nil {
		out.Invalid = err.Error()
		return out
	}
	for _, node := range q.Nodes {
		answer, err := decide(ctx, q, kube, node)
		if err != nil {
			out.Nodes, out.Unsupported = nil, err.Error()
			return out
		}
		out.Nodes = append(out.Nodes, answer)
	}
	return out
}

// outsideOfKueue is why the devices of a claim are none that Kueue charged a workload for.
func outsideOfKueue(claim *resourcev1.ResourceClaim) string {
	if claim.Status.Allocation == nil {
		return ""
	}
	if len(claim.Spec.Devices.Requests) == 0 {
		return "ask for none"
	}
	for _, result := range claim.Status.Allocation.Devices.Results {
		if result.AdminAccess != nil && *result.AdminAccess {
			return "have admin access"
		}
	}
	return ""
}

// decide asks about one node. The error is what Kueue does not do.
func decide(ctx context.Context, q *contract.Question, kube store, node *corev1.Node) (contract.NodeAnswer, error) {
	out := contract.NodeAnswer{Node: node.Name}
	queue, err := open(ctx, q, kube, node)
	if err != nil {
		return out, err
	}
	start := time.Now()
	out.PodAnswer, err = admit(ctx, kube, queue, q.AskedPod)
	out.Nanoseconds = time.Since(start).Nanoseconds()
	return out, err
}

// open makes the queue for a node, with the usage of the workloads whose claims have devices of it.
func open(ctx context.Context, q *contract.Question, kube store, node *corev1.Node) (*schdcache.ClusterQueueSnapshot, error) {
	devices := devicesOf(node, q.Slices)
	quotas := corev1.ResourceList{}
	for name := range extendedResources(q.Pod) {
		quotas[name] = node.Status.Allocatable[name] // of the node's own, if it has any
	}
	for _, class := range q.DeviceClasses {
		count := countDevices(ctx, class, devices)
		quotas[corev1.ResourceName(class.Name)] = *resource.NewQuantity(count, resource.DecimalSI)
	}
	cache := schdcache.New(kube)
	log := ctrl.LoggerFrom(ctx)
	cache.AddOrUpdateResourceFlavor(log, &kueue.ResourceFlavor{ObjectMeta: metav1.ObjectMeta{Name: string(flavor)}})
	if err := cache.AddClusterQueue(ctx, clusterQueue(quotas)); err != nil {
		return nil, err
	}
	snapshot, err := cache.Snapshot(ctx)
	if err != nil {
		return nil, err
	}
	queue := snapshot.ClusterQueue(queueName)
	if queue == nil {
		return nil, fmt.Errorf("the queue is not active")
	}
	for _, claim := range q.Allocated {
		if !usesOneOf(claim, devices) {
			continue
		}
		usage, err := charge(ctx, kube, workloadOf([]string{"in-use-" + claim.Name}, nil))
		if err != nil {
			return nil, fmt.Errorf("a claim in use: %w", err)
		}
		queue.AddUsage(usage)
	}
	return queue, nil
}

func clusterQueue(quotas corev1.ResourceList) *kueue.ClusterQueue {
	queue := &kueue.ClusterQueue{ObjectMeta: metav1.ObjectMeta{Name: queueName}}
	if len(quotas) == 0 {
		return queue
	}
	group := kueue.ResourceGroup{Flavors: []kueue.FlavorQuotas{{Name: flavor}}}
	for name, quota := range quotas {
		group.CoveredResources = append(group.CoveredResources, name)
		group.Flavors[0].Resources = append(group.Flavors[0].Resources, kueue.ResourceQuota{Name: name, NominalQuota: quota})
	}
	queue.Spec.ResourceGroups = []kueue.ResourceGroup{group}
	return queue
}

func usesOneOf(claim *resourcev1.ResourceClaim, devices map[deviceID]resourcev1.Device) bool {
	if claim.Status.Allocation == nil {
		return false
	}
	return slices.ContainsFunc(claim.Status.Allocation.Devices.Results, func(result resourcev1.DeviceRequestAllocationResult) bool {
		_, ok := devices[deviceID{result.Driver, result.Pool, result.Device}]
		return ok
	})
}

// admit is whether the quota of a queue has enough left for a pod.
func admit(ctx context.Context, kube store, queue *schdcache.ClusterQueueSnapshot, pod contract.AskedPod) (contract.PodAnswer, error) {
	var names []string
	for _, claim := range pod.Claims {
		names = append(names, claim.Name)
	}
	usage, err := charge(ctx, kube, workloadOf(names, pod.Pod))
	if lacking, ok := err.(shortage); ok {
		return contract.PodAnswer{Outcome: "none", Error: lacking.Error()}, nil
	}
	if err != nil {
		return contract.PodAnswer{}, err
	}
	if queue.Fits(usage) != schdcache.FitsCheckOk {
		return contract.PodAnswer{Outcome: "none", Error: describe(queue, usage)}, nil
	}
	return contract.PodAnswer{Outcome: "allocated"}, nil
}

func describe(queue *schdcache.ClusterQueueSnapshot, usage workload.Usage) string {
	var lacking []string
	for name, amount := range usage.Quota {
		if left := queue.Available(name); left.Cmp(amount) < 0 {
			lacking = append(lacking, fmt.Sprintf("%s %s are left, %s needed", left, name.Resource, amount))
		}
	}
	slices.Sort(lacking)
	return strings.Join(lacking, "; ")
}

// workloadOf is a workload of one pod with such claims, each of a template of its own.
func workloadOf(claims []string, pod *corev1.Pod) *kueue.Workload {
	out := &kueue.Workload{ObjectMeta: metav1.ObjectMeta{Name: "workload", Namespace: namespace}}
	set := kueue.PodSet{Name: podSet, Count: 1}
	if pod != nil {
		set.Template.Spec = *pod.Spec.DeepCopy()
		set.Template.Spec.ResourceClaims = nil
	}
	for _, name := range claims {
		set.Template.Spec.ResourceClaims = append(set.Template.Spec.ResourceClaims,
			corev1.PodResourceClaim{Name: name, ResourceClaimTemplateName: &name})
	}
	out.Spec.PodSets = []kueue.PodSet{set}
	return out
}

// shortage is why Kueue does not admit a workload, beside its quota: no mapping names a class, or the
// cluster has too few devices that its selectors match.
type shortage struct{ error }

// charge is what Kueue's controller of workloads reckons for one. Errors but a shortage are what
// Kueue does not do.
func charge(ctx context.Context, kube store, wl *kueue.Workload) (workload.Usage, error) {
	usage := workload.Usage{Quota: resources.FlavorResourceQuantities{}}
	workload.AdjustResources(ctx, kube, wl)
	counted, errs := dra.GetResourceRequestsForResourceClaimTemplates(ctx, kube, dra.NewResourceSliceCache(kube), kube.mapper, wl)
	if len(errs) > 0 {
		return usage, explain(errs)
	}
	extended, replaced, errs := dra.ResolveExtendedResourceQuota(ctx, kube, kube.mapper, wl)
	if len(errs) > 0 {
		return usage, explain(errs)
	}
	total := map[kueue.PodSetReference]corev1.ResourceList{
		podSet: utilresource.MergeResourceListKeepSum(counted[podSet], extended[podSet]),
	}
	info := workload.NewInfo(wl, workload.WithPreprocessedDRAResources(total, replaced))
	own := extendedResources(&corev1.Pod{Spec: wl.Spec.PodSets[0].Template.Spec})
	for name, amount := range info.TotalRequests[0].Requests {
		// What else a node has of its own is not asked about.
		if _, ok := total[podSet][name]; ok || own.Has(name) {
			usage.Quota[resources.FlavorResource{Flavor: flavor, Resource: name}] = resources.NewAmount(amount)
		}
	}
	return usage, nil
}

// explain tells what Kueue does not do from what it finds missing, by whether it says "not supported".
func explain(errs field.ErrorList) error {
	if strings.Contains(errs[0].Detail, "not supported") {
		_, what, _ := strings.Cut(errs[0].Detail, ": ")
		return errors.New(what)
	}
	return shortage{errs[0]}
}

// extendedResources is those that a pod's containers ask for.
func extendedResources(pod *corev1.Pod) sets.Set[corev1.ResourceName] {
	found := sets.New[corev1.ResourceName]()
	if pod == nil {
		return found
	}
	for _, container := range slices.Concat(pod.Spec.InitContainers, pod.Spec.Containers) {
		for name := range container.Resources.Requests {
			if utilresource.IsExtendedResourceName(name) {
				found.Insert(name)
			}
		}
	}
	return found
}
