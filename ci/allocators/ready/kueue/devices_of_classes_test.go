package dra_test

import (
	"context"
	"fmt"
	"testing"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	configapi "sigs.k8s.io/kueue/apis/config/v1beta2"
	kueue "sigs.k8s.io/kueue/apis/kueue/v1beta2"
	"sigs.k8s.io/kueue/pkg/dra"
)

const driver = "gpu.example.com"

// cluster has a class for the devices of a driver, and one slice with these devices.
func cluster(t *testing.T, devices []resourcev1.Device, more ...client.Object) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := resourcev1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	class := &resourcev1.DeviceClass{ObjectMeta: metav1.ObjectMeta{Name: "gpu"}}
	slice := &resourcev1.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "slice"},
		Spec: resourcev1.ResourceSliceSpec{
			Driver:  driver,
			Pool:    resourcev1.ResourcePool{Name: "pool", Generation: 1, ResourceSliceCount: 1},
			Devices: devices,
		},
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(class, slice).WithObjects(more...).
		WithIndex(&resourcev1.DeviceClass{}, "spec.extendedResourceName", func(obj client.Object) []string {
			if name := obj.(*resourcev1.DeviceClass).Spec.ExtendedResourceName; name != nil {
				return []string{*name}
			}
			return nil
		}).Build()
}

func mapper(t *testing.T) *dra.ResourceMapper {
	t.Helper()
	made := dra.NewResourceMapper()
	err := made.PopulateFromConfiguration([]configapi.DeviceClassMapping{
		{Name: "whole-gpus", DeviceClassNames: []corev1.ResourceName{"gpu"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func workloadOf(spec corev1.PodSpec) *kueue.Workload {
	return &kueue.Workload{
		ObjectMeta: metav1.ObjectMeta{Name: "wl", Namespace: "ns"},
		Spec: kueue.WorkloadSpec{PodSets: []kueue.PodSet{
			{Name: "main", Count: 1, Template: corev1.PodTemplateSpec{Spec: spec}},
		}},
	}
}

// countDevices resolves a workload with one claim that asks for devices of the class.
func countDevices(t *testing.T, devices []resourcev1.Device, count int64, selectors ...resourcev1.DeviceSelector) error {
	t.Helper()
	name := "template"
	template := &resourcev1.ResourceClaimTemplate{ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "ns"}}
	template.Spec.Spec.Devices.Requests = []resourcev1.DeviceRequest{{
		Name: "r",
		Exactly: &resourcev1.ExactDeviceRequest{
			DeviceClassName: "gpu",
			AllocationMode:  resourcev1.DeviceAllocationModeExactCount,
			Count:           count,
			Selectors:       selectors,
		},
	}}
	cl := cluster(t, devices, template)
	wl := workloadOf(corev1.PodSpec{
		ResourceClaims: []corev1.PodResourceClaim{{Name: "gpus", ResourceClaimTemplateName: &name}},
	})
	_, errs := dra.GetResourceRequestsForResourceClaimTemplates(context.Background(), cl, dra.NewResourceSliceCache(cl), mapper(t), wl)
	return errs.ToAggregate()
}

// A class is an extended resource by its own name too, whether or not it declares another.
func TestExtendedResourceByTheNameOfTheClass(t *testing.T) {
	name := corev1.ResourceName(resourcev1.ResourceDeviceClassPrefix + "gpu")
	wl := workloadOf(corev1.PodSpec{Containers: []corev1.Container{{
		Name:      "c",
		Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{name: resource.MustParse("2")}},
	}}})
	charged, _, errs := dra.ResolveExtendedResourceQuota(context.Background(), cluster(t, nil), mapper(t), wl)
	if err := errs.ToAggregate(); err != nil {
		t.Fatal(err)
	}
	amount := charged["main"]["whole-gpus"]
	if amount.Value() != 2 {
		t.Errorf("%s is charged as %v, not as two whole-gpus", name, charged["main"])
	}
}

// A selector reads what it names; that a device has a list attribute beside it does not matter.
func TestSelectorOnADeviceWithAListAttribute(t *testing.T) {
	kind := "gpu"
	device := resourcev1.Device{
		Name: "gpu-0",
		Attributes: map[resourcev1.QualifiedName]resourcev1.DeviceAttribute{
			"type": {StringValue: &kind},
			"numa": {IntValues: []int64{0, 1}},
		},
	}
	expression := fmt.Sprintf(`device.attributes[%q].type == "gpu"`, driver)
	selector := resourcev1.DeviceSelector{CEL: &resourcev1.CELDeviceSelector{Expression: expression}}
	if err := countDevices(t, []resourcev1.Device{device}, 1, selector); err != nil {
		t.Errorf("the device is not selected: %v", err)
	}
}

// A claim with more devices than an allocation can have is never allocated (AllocationResultsMaxSize).
func TestMoreDevicesThanAClaimCanHave(t *testing.T) {
	if err := countDevices(t, nil, resourcev1.AllocationResultsMaxSize+1); err == nil {
		t.Error("the workload would hold quota for pods that can never be scheduled")
	}
}
