// Package vectors holds an allocator to what Kubernetes' own answers.
package vectors

import (
	"bufio"
	"encoding/json"
	"os"
	"slices"
	"testing"
)

type vector struct {
	ID         string          `json:"id"`
	Kubernetes []string        `json:"kubernetes"`
	Sentence   string          `json:"sentence"`
	Question   json.RawMessage `json:"question"`
	Expected   map[string]bool `json:"expected"`
}

// fits is the allocator under test: whether the question's claims fit a node. Its objects are those
// of k8s.io/api/resource/v1 and k8s.io/api/core/v1.
func fits(question json.RawMessage, node string) bool {
	return true
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
				if got := fits(v.Question, node); got != expected {
					t.Errorf("%s: fits %s: %v, not %v: %s", v.ID, node, got, expected, v.Sentence)
				}
			}
		})
	}
	if err := lines.Err(); err != nil {
		t.Fatal(err)
	}
}
