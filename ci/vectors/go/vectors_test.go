// Package vectors holds an allocator to what Kubernetes' own answers.
package vectors

import (
	"bufio"
	"encoding/json"
	"os"
	"reflect"
	"slices"
	"testing"
)

type vector struct {
	ID         string          `json:"id"`
	Kubernetes []string        `json:"kubernetes"`
	Sentence   string          `json:"sentence"`
	Question   json.RawMessage `json:"question"`
	Expected   map[string]bool `json:"expected"`
	// Devices has those of each claim as driver/pool/device, where no others are right.
	Devices map[string][][]string `json:"devices"`
}

// allocate is the allocator under test: the devices of each of the question's claims on a node, as
// driver/pool/device, and whether they fit. Its objects are those of k8s.io/api/resource/v1 and
// k8s.io/api/core/v1.
func allocate(question json.RawMessage, node string) ([][]string, bool) {
	return [][]string{}, true
}

func TestVectors(t *testing.T) {
	file, err := os.Open(os.Getenv("VECTORS"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var v vector
		if err := json.Unmarshal(lines.Bytes(), &v); err != nil {
			t.Fatal(err)
		}
		if !slices.Contains(v.Kubernetes, os.Getenv("KUBERNETES")) {
			continue
		}
		t.Run(v.ID, func(t *testing.T) {
			for node, expected := range v.Expected {
				devices, fits := allocate(v.Question, node)
				if fits != expected {
					t.Errorf("%s: fits %s: %v, not %v: %s", v.ID, node, fits, expected, v.Sentence)
				}
				for _, claim := range devices {
					slices.Sort(claim)
				}
				if only, ok := v.Devices[node]; ok && fits && !reflect.DeepEqual(devices, only) {
					t.Errorf("%s: devices on %s: %v, not %v: %s", v.ID, node, devices, only, v.Sentence)
				}
			}
		})
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}
