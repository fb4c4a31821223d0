// Package contract has the questions and answers of allocation/v1 (docs/allocators.md) for programs
// that ask an allocator of somebody else.
package contract

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"os"

	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
)

// Question is a line of input. Unknown fields are dropped, as a client drops what its version of the
// API does not have.
type Question struct {
	ID string `json:"id"`
	AskedPod
	Following     []AskedPod                  `json:"following"`
	Slices        []*resourcev1.ResourceSlice `json:"slices"`
	DeviceClasses []*resourcev1.DeviceClass   `json:"deviceClasses"`
	Nodes         []*corev1.Node              `json:"nodes"`
	Allocated     []*resourcev1.ResourceClaim `json:"allocated"`
	Place         string                      `json:"place"`
	Repeat        int                         `json:"repeat"`
}

// AskedPod is a pod of a question.
type AskedPod struct {
	Claims []*resourcev1.ResourceClaim `json:"claims"`
	Pod    *corev1.Pod                 `json:"pod"`
}

// Pods is all pods of a question, in order.
func (q *Question) Pods() []AskedPod { return append([]AskedPod{q.AskedPod}, q.Following...) }

// Answer is a line of output.
type Answer struct {
	ID          string       `json:"id"`
	Nodes       []NodeAnswer `json:"nodes,omitempty"`
	Invalid     string       `json:"invalid,omitempty"`
	Unsupported string       `json:"unsupported,omitempty"`
}

// PodAnswer is the answer for one pod on one node.
type PodAnswer struct {
	Outcome     string                        `json:"outcome"`
	Allocations []resourcev1.AllocationResult `json:"allocations,omitempty"`
	Error       string                        `json:"error,omitempty"`
}

// NodeAnswer is the answer for a node: for the first pod, and for those that follow.
type NodeAnswer struct {
	Node string `json:"node"`
	PodAnswer
	Nanoseconds int64       `json:"ns"`
	Following   []PodAnswer `json:"following,omitempty"`
}

// Serve answers the questions on standard input, a line each, until it ends.
func Serve(respond func(*Question) Answer) error {
	reader := bufio.NewReaderSize(os.Stdin, 1<<20)
	writer := bufio.NewWriter(os.Stdout)
	defer writer.Flush()
	encoder := json.NewEncoder(writer)
	encoder.SetEscapeHTML(false)
	for {
		line, err := reader.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			if err := encoder.Encode(respondToLine(line, respond)); err != nil {
				return err
			}
			if err := writer.Flush(); err != nil {
				return err
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

func respondToLine(line []byte, respond func(*Question) Answer) Answer {
	var question Question
	if err := json.Unmarshal(line, &question); err != nil {
		return Answer{ID: question.ID, Invalid: err.Error()}
	}
	return respond(&question)
}
