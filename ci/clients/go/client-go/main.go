// A client of the API as controllers and drivers written in Go are: it does what client-go does
// against the server of a kubeconfig, and prints one line for each thing that it has seen.
//
// Usage: api-client KUBECONFIG NAMESPACE
package main

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	applyresource "k8s.io/client-go/applyconfigurations/resource/v1"
	"k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes"
	resourceclient "k8s.io/client-go/kubernetes/typed/resource/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/tools/clientcmd"
)

const seconds = 60

func check(err error) {
	if err != nil {
		panic(err)
	}
}

func say(format string, values ...any) { fmt.Printf(format+"\n", values...) }

func main() {
	ctx, cancel := context.WithTimeout(context.Background(), seconds*time.Second)
	defer cancel()
	namespace := os.Args[2]
	for _, contentType := range []string{runtime.ContentTypeJSON, runtime.ContentTypeProtobuf} {
		config, err := clientcmd.BuildConfigFromFlags("", os.Args[1])
		check(err)
		config.ContentType = contentType
		client, err := kubernetes.NewForConfig(config)
		check(err)
		use(ctx, client, namespace)
		say("done with %s", contentType)
	}
}

func use(ctx context.Context, client kubernetes.Interface, namespace string) {
	version, err := client.Discovery().ServerVersion()
	check(err)
	say("version %s", version.GitVersion)
	claims := client.ResourceV1().ResourceClaims(namespace)
	defer inform(ctx, client)()
	created := create(ctx, claims)
	conflict(ctx, claims, created)
	apply(ctx, claims, created.Name)
	watch(ctx, claims, created)
	pages(ctx, claims)
	_, err = claims.Get(ctx, "none", metav1.GetOptions{})
	say("get of none: not found %v", apierrors.IsNotFound(err))
}

// inform starts informers; what it returns waits until they have seen what was done and is undone.
func inform(ctx context.Context, client kubernetes.Interface) func() {
	var added, updated, deleted atomic.Int32
	factory := informers.NewSharedInformerFactory(client, 0)
	informer := factory.Resource().V1().ResourceClaims().Informer()
	_, err := informer.AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc:    func(any) { added.Add(1) },
		UpdateFunc: func(any, any) { updated.Add(1) },
		DeleteFunc: func(any) { deleted.Add(1) },
	})
	check(err)
	slices := factory.Resource().V1().ResourceSlices().Informer()
	factory.Start(ctx.Done())
	if !cache.WaitForCacheSync(ctx.Done(), informer.HasSynced, slices.HasSynced) {
		panic("the informers did not sync")
	}
	say("informers synced: %d slices", len(slices.GetStore().List()))
	return func() {
		for ctx.Err() == nil && deleted.Load() < 6 {
			time.Sleep(10 * time.Millisecond)
		}
		say("informer: added %d, updated %v, deleted %d",
			added.Load(), updated.Load() > 0, deleted.Load())
	}
}

func claim(name string) *resourceapi.ResourceClaim {
	exactly := &resourceapi.ExactDeviceRequest{DeviceClassName: "some.example.com"}
	request := resourceapi.DeviceRequest{Name: "gpu", Exactly: exactly}
	return &resourceapi.ResourceClaim{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"test": "client-go"}},
		Spec: resourceapi.ResourceClaimSpec{
			Devices: resourceapi.DeviceClaim{Requests: []resourceapi.DeviceRequest{request}},
		},
	}
}

func create(ctx context.Context, claims resourceclient.ResourceClaimInterface) *resourceapi.ResourceClaim {
	created, err := claims.Create(ctx, claim("one"), metav1.CreateOptions{})
	check(err)
	say("created with count %d", created.Spec.Devices.Requests[0].Exactly.Count)
	_, err = claims.Create(ctx, claim("one"), metav1.CreateOptions{})
	say("created again: already exists %v", apierrors.IsAlreadyExists(err))
	_, err = claims.Create(ctx, claim("Not A Name"), metav1.CreateOptions{})
	say("created with a wrong name: invalid %v", apierrors.IsInvalid(err))
	return created
}

func conflict(
	ctx context.Context, claims resourceclient.ResourceClaimInterface, old *resourceapi.ResourceClaim,
) {
	changed := old.DeepCopy()
	changed.Annotations = map[string]string{"example.com/changed": "yes"}
	_, err := claims.Update(ctx, changed, metav1.UpdateOptions{})
	check(err)
	_, err = claims.Update(ctx, changed, metav1.UpdateOptions{})
	say("updated from an old version: conflict %v", apierrors.IsConflict(err))
}

func apply(ctx context.Context, claims resourceclient.ResourceClaimInterface, name string) {
	wanted := applyresource.ResourceClaim(name, "").WithLabels(map[string]string{"applied": "yes"})
	wanted.Namespace = nil
	applied, err := claims.Apply(ctx, wanted, metav1.ApplyOptions{FieldManager: "client", Force: true})
	check(err)
	say("applied: labels %v", applied.Labels)
}

// watch sees again what has happened since a version, and is refused one that was never there.
func watch(
	ctx context.Context, claims resourceclient.ResourceClaimInterface, from *resourceapi.ResourceClaim,
) {
	options := metav1.ListOptions{
		ResourceVersion: from.ResourceVersion, LabelSelector: "test in (client-go)",
		FieldSelector: "metadata.name=one",
	}
	stream, err := claims.Watch(ctx, options)
	check(err)
	defer stream.Stop()
	check(claims.Delete(ctx, from.Name, metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &from.UID},
	}))
	for event := range stream.ResultChan() {
		object := event.Object.(*resourceapi.ResourceClaim)
		say("watch: %s %s", event.Type, object.Name)
		if event.Type == "DELETED" {
			return
		}
	}
	panic("the watch ended before its deletion came")
}

func pages(ctx context.Context, claims resourceclient.ResourceClaimInterface) {
	for number := range 5 {
		_, err := claims.Create(ctx, claim(fmt.Sprintf("page-%d", number)), metav1.CreateOptions{})
		check(err)
	}
	options := metav1.ListOptions{Limit: 2}
	for {
		listed, err := claims.List(ctx, options)
		check(err)
		say("page of %d at most 2", len(listed.Items))
		if options.Continue = listed.Continue; options.Continue == "" {
			break
		}
	}
	check(claims.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{
		LabelSelector: "test=client-go",
	}))
	left, err := claims.List(ctx, metav1.ListOptions{})
	check(err)
	say("left: %d", len(left.Items))
}
