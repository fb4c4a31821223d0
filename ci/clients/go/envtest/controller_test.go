// A controller's own test with controller-runtime's envtest, as operators have it, with a simulated
// Kubernetes in place of etcd and kube-apiserver: envtest.Environment{UseExistingCluster: true}.
package envtest

import (
	"context"
	"os"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/envtest"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"
)

const (
	finalizer = "example.com/ledger"
	allocated = "example.com/allocated"
	owned     = "example.com/owned"
)

// ledger notes on each claim whether it is allocated, keeps a claim of its own beside each that asks
// for one, and holds a claim that is deleted until it has seen that.
type ledger struct {
	client.Client
	deleted chan string
}

func (l *ledger) Reconcile(ctx context.Context, request ctrl.Request) (ctrl.Result, error) {
	var claim resourceapi.ResourceClaim
	if err := l.Get(ctx, request.NamespacedName, &claim); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	if claim.DeletionTimestamp != nil {
		if controllerutil.RemoveFinalizer(&claim, finalizer) {
			if err := l.Update(ctx, &claim); err != nil {
				return ctrl.Result{}, err
			}
			l.deleted <- claim.Name
		}
		return ctrl.Result{}, nil
	}
	before := claim.DeepCopy()
	controllerutil.AddFinalizer(&claim, finalizer)
	if claim.Status.Allocation != nil {
		metav1.SetMetaDataAnnotation(&claim.ObjectMeta, allocated, claim.Status.Allocation.Devices.Results[0].Device)
	}
	if err := l.Patch(ctx, &claim, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{})); err != nil {
		return ctrl.Result{}, err
	}
	if claim.Labels[owned] != "wanted" {
		return ctrl.Result{}, nil
	}
	twin := newClaim(claim.Name + "-twin")
	_, err := controllerutil.CreateOrUpdate(ctx, l.Client, twin, func() error {
		twin.Annotations = map[string]string{"example.com/of": claim.Name}
		return controllerutil.SetControllerReference(&claim, twin, l.Scheme())
	})
	return ctrl.Result{}, err
}

func newClaim(name string) *resourceapi.ResourceClaim {
	exactly := &resourceapi.ExactDeviceRequest{DeviceClassName: "gpu"}
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default"},
		Spec: resourceapi.ResourceClaimSpec{Devices: resourceapi.DeviceClaim{
			Requests: []resourceapi.DeviceRequest{{Name: "gpu", Exactly: exactly}},
		}},
	}
}

func driver() []client.Object {
	slice := &resourceapi.ResourceSlice{
		ObjectMeta: metav1.ObjectMeta{Name: "node-1-gpus"},
		Spec: resourceapi.ResourceSliceSpec{
			Driver: "gpu.example.com", NodeName: ptr.To("node-1"),
			Pool:    resourceapi.ResourcePool{Name: "node-1", Generation: 1, ResourceSliceCount: 1},
			Devices: []resourceapi.Device{{Name: "gpu-0"}},
		},
	}
	selector := resourceapi.CELDeviceSelector{Expression: `device.driver == "gpu.example.com"`}
	class := &resourceapi.DeviceClass{
		ObjectMeta: metav1.ObjectMeta{Name: "gpu"},
		Spec:       resourceapi.DeviceClassSpec{Selectors: []resourceapi.DeviceSelector{{CEL: &selector}}},
	}
	return []client.Object{slice, class}
}

func podWith(claim string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "user-of-" + claim, Namespace: "default"},
		Spec: corev1.PodSpec{
			ResourceClaims: []corev1.PodResourceClaim{{Name: "gpu", ResourceClaimName: &claim}},
			Containers: []corev1.Container{{
				Name: "main", Image: "main:1",
				Resources: corev1.ResourceRequirements{Claims: []corev1.ResourceClaim{{Name: "gpu"}}},
			}},
		},
	}
}

func TestControllerOfClaims(t *testing.T) {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	config, err := clientcmd.BuildConfigFromFlags("", os.Getenv("KUBECONFIG"))
	check(t, err)
	environment := &envtest.Environment{UseExistingCluster: ptr.To(true), Config: config}
	config, err = environment.Start()
	check(t, err)
	t.Cleanup(func() { check(t, environment.Stop()) })
	manager, err := ctrl.NewManager(config, ctrl.Options{Metrics: metricsserver.Options{BindAddress: "0"}})
	check(t, err)
	reconciler := &ledger{manager.GetClient(), make(chan string, 10)}
	check(t, ctrl.NewControllerManagedBy(manager).
		For(&resourceapi.ResourceClaim{}).Owns(&resourceapi.ResourceClaim{}).Complete(reconciler))
	ended := make(chan error)
	running, stop := context.WithCancel(ctx)
	go func() { ended <- manager.Start(running) }()
	t.Cleanup(func() { stop(); check(t, <-ended) })

	direct, err := client.New(config, client.Options{})
	check(t, err)
	for _, object := range driver() {
		check(t, direct.Create(ctx, object))
	}
	first := newClaim("first")
	first.Labels = map[string]string{owned: "wanted"}
	check(t, direct.Create(ctx, first))
	check(t, direct.Create(ctx, podWith("first")))

	key := client.ObjectKeyFromObject(first)
	eventually(ctx, t, "the claim is allocated, and the controller has noted it", func() bool {
		check(t, direct.Get(ctx, key, first))
		return first.Annotations[allocated] == "gpu-0"
	})
	twin := newClaim("first-twin")
	eventually(ctx, t, "the controller has made the other claim", func() bool {
		return direct.Get(ctx, client.ObjectKeyFromObject(twin), twin) == nil
	})
	if owner := metav1.GetControllerOf(twin); owner == nil || owner.UID != first.UID {
		t.Errorf("the other claim's controller is %v", owner)
	}
	stale := first.DeepCopy()
	stale.ResourceVersion = "1"
	if err := direct.Update(ctx, stale); !apierrors.IsConflict(err) {
		t.Errorf("an update of an old version: %v", err)
	}
	check(t, direct.Delete(ctx, podWith("first"), client.GracePeriodSeconds(0)))
	check(t, direct.Delete(ctx, first))
	select {
	case name := <-reconciler.deleted:
		if name != "first" {
			t.Errorf("%s was deleted first", name)
		}
	case <-ctx.Done():
		t.Fatal("the controller has not seen the deletion")
	}
	eventually(ctx, t, "both claims are gone, the second by garbage collection", func() bool {
		var claims resourceapi.ResourceClaimList
		check(t, direct.List(ctx, &claims, client.InNamespace("default")))
		return len(claims.Items) == 0
	})
}

func eventually(ctx context.Context, t *testing.T, what string, condition func() bool) {
	t.Helper()
	for !condition() {
		select {
		case <-ctx.Done():
			t.Fatalf("in time: %s", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
