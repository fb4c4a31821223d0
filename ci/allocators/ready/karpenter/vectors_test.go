package dynamicresources_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"time"
	"unique"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"sigs.k8s.io/karpenter/pkg/cloudprovider"
	"sigs.k8s.io/karpenter/pkg/controllers/dynamicresources/deviceallocation"
	"sigs.k8s.io/karpenter/pkg/scheduling"
	"sigs.k8s.io/karpenter/pkg/scheduling/dynamicresources"
)

// Each class is one thing in which the allocator and Kubernetes' own differ; README.md beside this
// file says how to run it, and the vectors what is right by which text of the API.
var classes = []struct {
	name, known string
	vectors     []string
}{
	{"distinctAttribute", "PR 3110", []string{"distinct-attribute"}},
	{"a counter that is used up keeps away only what draws on it", "", []string{
		"two-whole-gpus-with-counter-sets", "whole-gpu-and-partition-of-another", "two-partitions-of-one-gpu"}},
	{"a claim that is allocated on a node stays there", "", []string{
		"claim-of-another-node", "claim-of-another-node-beside-one-to-allocate"}},
	{"perDeviceNodeSelection", "", []string{"per-device-node-selection", "device-for-all-nodes-of-a-slice"}},
	{"a device too many is seen at once", "", []string{"eleven-of-ten"}},
	{"taints of devices", "issue 3233", []string{"tainted-device", "evicting-taint", "one-of-two-taints-tolerated"}},
	{"a capacity request of a whole device", "", []string{"capacity-of-a-whole-device", "capacity-that-no-device-has"}},
	{"two devices are not two shares of one", "", []string{"one-shared-device-for-two"}},
	{"a selector that fails ends the attempt", "", []string{"selector-that-fails-on-one-device"}},
	{"adminAccess in requests", "issue 3230", []string{"admin-access-in-use", "all-with-admin-access"}},
	{"adminAccess in results", "issue 3221", []string{"admin-result-counts-as-use", "counters-and-admin-access-of-others"}},
	{"All, and pools of other nodes", "", []string{"all-and-broken-pool-elsewhere", "all-and-updating-pool-elsewhere"}},
	{"amounts of counters are quantities", "", []string{"counter-in-thousandths", "counter-in-thousandths-too-little"}},
	{"shares draw on counters once", "issue 3213", []string{"share-of-a-counted-device", "second-share-of-a-counted-device"}},
	{"a device that is held whole", "issue 3213", []string{"shared-device-held-whole"}},
	{"two shares in one claim", "issue 3209", []string{"two-shares-in-one-claim"}},
	{"All, and devices that can never give the capacity", "", []string{"all-that-have-enough"}},
	{"node selectors by name", "", []string{"node-selector-by-name"}},
	{"node selectors on well-known labels", "", []string{"node-without-zone"}},
	{"pools of several nodes", "", []string{"one-pool-name-on-two-nodes", "newer-generation-elsewhere"}},
	{"alternatives that are not needed", "", []string{"alternative-that-does-not-compile"}},
}

type vector struct {
	ID, Sentence, Source string
	Question             struct {
		Slices        []*resourcev1.ResourceSlice
		DeviceClasses []*resourcev1.DeviceClass
		Nodes         []*corev1.Node
		Claims        []*resourcev1.ResourceClaim
		Allocated     []*resourcev1.ResourceClaim
	}
	Expected map[string]bool
}

// vectorClient has the classes and claims of one vector.
type vectorClient struct {
	client.Client
	vector vector
}

func (c vectorClient) Get(_ context.Context, key client.ObjectKey, into client.Object, _ ...client.GetOption) error {
	for _, class := range c.vector.Question.DeviceClasses {
		if out, ok := into.(*resourcev1.DeviceClass); ok && class.Name == key.Name {
			class.DeepCopyInto(out)
			return nil
		}
	}
	return apierrors.NewNotFound(schema.GroupResource{Group: "resource.k8s.io", Resource: "deviceclasses"}, key.Name)
}

func (c vectorClient) List(_ context.Context, into client.ObjectList, _ ...client.ListOption) error {
	out, ok := into.(*resourcev1.ResourceClaimList)
	if !ok {
		return fmt.Errorf("unexpected list of %T", into)
	}
	for _, claims := range [][]*resourcev1.ResourceClaim{c.vector.Question.Allocated, c.vector.Question.Claims} {
		for _, claim := range claims {
			if claim.Status.Allocation != nil {
				out.Items = append(out.Items, *claim)
			}
		}
	}
	return nil
}

// vectorNode is an initialized node of the cluster.
type vectorNode struct{ *corev1.Node }

func (n vectorNode) ID() dynamicresources.NodeClaimID        { return unique.Make(n.Name) }
func (n vectorNode) NodeName() string                        { return n.Name }
func (n vectorNode) NodePoolID() dynamicresources.NodePoolID { return unique.Make("default") }
func (n vectorNode) Requirements() scheduling.Requirements {
	return scheduling.NewLabelRequirements(n.Labels)
}
func (n vectorNode) InstanceTypes() []dynamicresources.InstanceTypeID {
	return []dynamicresources.InstanceTypeID{unique.Make("type")}
}
func (n vectorNode) ResourceSlices() map[dynamicresources.InstanceTypeID][]dynamicresources.ResourceSlice {
	return nil
}

func devicesInUse(ctx context.Context, kube client.Client) dynamicresources.AllocatedDeviceState {
	controller := deviceallocation.NewController(kube)
	controller.Hydrate(ctx)
	devices, err := controller.AllocatedDevices(ctx)
	Expect(err).ToNot(HaveOccurred())
	state := dynamicresources.AllocatedDeviceState{
		ExclusiveDevices: sets.New[cloudprovider.DeviceID](),
		ConsumedCapacity: map[cloudprovider.DeviceID]map[resourcev1.QualifiedName]resource.Quantity{},
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
	return state
}

func readVectors() map[string]vector {
	file, err := os.Open("testdata/vectors.ndjson")
	if err != nil {
		panic(err)
	}
	defer file.Close()
	vectors := map[string]vector{}
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var read vector
		if err := json.Unmarshal(lines.Bytes(), &read); err != nil {
			panic(err)
		}
		vectors[read.ID] = read
	}
	return vectors
}

var _ = Describe("Kubernetes' own answers", func() {
	vectors := readVectors()
	for _, class := range classes {
		name := class.name
		if class.known != "" {
			name += " (" + class.known + ")"
		}
		Context(name, func() {
			for _, id := range class.vectors {
				It(id, func(ctx SpecContext) {
					read, ok := vectors[id]
					Expect(ok).To(BeTrue(), "testdata/vectors.ndjson lacks it")
					kube := vectorClient{vector: read}
					var published []dynamicresources.ResourceSlice
					for _, slice := range read.Question.Slices {
						published = append(published, dynamicresources.NewAPIServerSlice(slice))
					}
					for _, node := range read.Question.Nodes {
						allocator := dynamicresources.NewAllocator(published, devicesInUse(ctx, kube), nil, kube, nil)
						within, cancel := context.WithTimeout(ctx, time.Second)
						_, err := allocator.Allocate(within, vectorNode{node}, read.Question.Claims)
						cancel()
						Expect(within.Err()).ToNot(MatchError(context.DeadlineExceeded), read.Sentence)
						if read.Expected[node.Name] {
							Expect(err).ToNot(HaveOccurred(), "%s (%s)", read.Sentence, read.Source)
						} else {
							Expect(err).To(HaveOccurred(), "%s (%s)", read.Sentence, read.Source)
						}
					}
				})
			}
		})
	}
})
