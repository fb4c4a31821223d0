// Command celoracle evaluates device selectors with the real CEL environment of Kubernetes:
// NDJSON in, NDJSON out, one answer per line. See README.md beside go.mod for the format.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"reflect"
	"time"

	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apiserver/pkg/cel/environment"
	dracel "k8s.io/dynamic-resource-allocation/cel"
)

type device struct {
	Driver                   string                                                    `json:"driver"`
	AllowMultipleAllocations *bool                                                     `json:"allowMultipleAllocations"`
	Attributes               map[resourceapi.QualifiedName]resourceapi.DeviceAttribute `json:"attributes"`
	Capacity                 map[resourceapi.QualifiedName]resourceapi.DeviceCapacity  `json:"capacity"`
}

// features has the field names of the allocator's features; those without a meaning for CEL are
// accepted, so that a line can carry the same object as one for the allocator.
type features struct {
	AdminAccess             bool `json:"adminAccess"`
	CompatibilityGroups     bool `json:"compatibilityGroups"`
	ConsumableCapacity      bool `json:"consumableCapacity"`
	DerivedAttributes       bool `json:"derivedAttributes"`
	DeviceBindingAndStatus  bool `json:"deviceBindingAndStatus"`
	DeviceTaints            bool `json:"deviceTaints"`
	FractionalCapacityRange bool `json:"fractionalCapacityRange"`
	ListTypeAttributes      bool `json:"listTypeAttributes"`
	OptionalNodeOperations  bool `json:"optionalNodeOperations"`
	PartitionableDevices    bool `json:"partitionableDevices"`
	PrioritizedList         bool `json:"prioritizedList"`
}

type question struct {
	ID         string   `json:"id"`
	Expression string   `json:"expression"`
	Device     device   `json:"device"`
	Features   features `json:"features"`
	Env        string   `json:"env"`
	Derived    bool     `json:"derived"`
	CostLimit  *uint64  `json:"costLimit"`
	Repeat     int      `json:"repeat"`
}

type answer struct {
	ID           string                       `json:"id"`
	Match        *bool                        `json:"match,omitempty"`
	Attribute    *resourceapi.DeviceAttribute `json:"attribute,omitempty"`
	CompileError string                       `json:"compileError,omitempty"`
	Error        string                       `json:"error,omitempty"`
	Cost         *uint64                      `json:"cost,omitempty"`
	MaxCost      *uint64                      `json:"maxCost,omitempty"`
	Type         string                       `json:"type,omitempty"`
	Invalid      string                       `json:"invalid,omitempty"`
	// Nanoseconds of the fastest of "repeat" compilations and evaluations.
	CompileNs int64 `json:"compileNs,omitempty"`
	Ns        int64 `json:"ns,omitempty"`
}

// set turns a field of upstream's on, if this minor has it.
func set(target any, name string, on bool) bool {
	field := reflect.ValueOf(target).Elem().FieldByName(name)
	if field.IsValid() {
		field.SetBool(on)
	}
	return field.IsValid()
}

// fastest is the shortest time of n calls.
func fastest(n int, action func()) int64 {
	var best time.Duration
	for i := range n {
		start := time.Now()
		action()
		if took := time.Since(start); i == 0 || took < best {
			best = took
		}
	}
	return best.Nanoseconds()
}

func respond(line []byte) (out answer) {
	var q question
	decoder := json.NewDecoder(bytes.NewReader(line))
	decoder.DisallowUnknownFields()
	err := decoder.Decode(&q)
	out.ID = q.ID
	if err == nil {
		if _, extra := decoder.Token(); extra != io.EOF {
			err = fmt.Errorf("more than one JSON value in the line")
		}
	}
	envType := environment.StoredExpressions
	switch q.Env {
	case "", "StoredExpressions":
	case "NewExpressions":
		envType = environment.NewExpressions
	default:
		err = fmt.Errorf("env: %q is neither StoredExpressions nor NewExpressions", q.Env)
	}
	if err != nil {
		out.Invalid = err.Error()
		return out
	}
	defer func() {
		if r := recover(); r != nil {
			out.Error = fmt.Sprintf("panic: %v", r)
		}
	}()
	var chosen dracel.Features
	set(&chosen, "EnableConsumableCapacity", q.Features.ConsumableCapacity)
	set(&chosen, "EnableListTypeAttributes", q.Features.ListTypeAttributes)
	options := dracel.Options{EnvType: &envType, CostLimit: q.CostLimit}
	if !set(&options, "DerivedAttribute", q.Derived) && q.Derived {
		out.Invalid = "derived: this minor has no derived attributes"
		return out
	}
	compile := func() dracel.CompilationResult {
		return dracel.GetCompiler(chosen).CompileCELExpression(q.Expression, options)
	}
	compiled := compile()
	out.CompileNs = fastest(q.Repeat, func() { compile() })
	if compiled.Error != nil {
		out.CompileError = compiled.Error.Detail
		return out
	}
	out.MaxCost = &compiled.MaxCost
	out.Type = compiled.OutputType.String()
	input, err := visible(q.Device, q.Derived)
	if err != nil {
		out.Invalid = err.Error()
		return out
	}
	if q.Derived {
		var err error
		out.Attribute, out.Cost, err = derive(compiled, input)
		if err != nil {
			out.Attribute, out.Error = nil, err.Error()
		}
		return out
	}
	match, details, err := compiled.DeviceMatches(context.Background(), input)
	out.Ns = fastest(q.Repeat, func() { _, _, _ = compiled.DeviceMatches(context.Background(), input) })
	if details != nil {
		out.Cost = details.ActualCost()
	}
	if err != nil {
		out.Error = err.Error()
		return out
	}
	out.Match = &match
	return out
}

func run() error {
	reader := bufio.NewReaderSize(os.Stdin, 1<<20)
	writer := bufio.NewWriter(os.Stdout)
	defer writer.Flush()
	encoder := json.NewEncoder(writer)
	encoder.SetEscapeHTML(false)
	for {
		line, err := reader.ReadBytes('\n')
		if len(bytes.TrimSpace(line)) > 0 {
			if err := encoder.Encode(respond(line)); err != nil {
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

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "celoracle:", err)
		os.Exit(1)
	}
}
