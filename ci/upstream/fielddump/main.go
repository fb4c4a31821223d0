// Command fielddump prints the fields of the Kubernetes objects that an allocation depends on, as
// JSON: type -> field -> type.
//
// Our reader of problems refuses fields that do not exist, as strict decoding in Go does. It works
// from this table, so it is generated from the API types of one Kubernetes minor:
//
//	go run ./fielddump > ../../reference_allocator/data/fields-1.37.json
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"strings"

	v1 "k8s.io/api/core/v1"
	resourceapi "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// special types have a form in JSON that their Go type does not show.
var special = map[reflect.Type]string{
	reflect.TypeFor[resource.Quantity]():    "quantity",
	reflect.TypeFor[metav1.Time]():          "time",
	reflect.TypeFor[metav1.MicroTime]():     "time",
	reflect.TypeFor[runtime.RawExtension](): "any",
	reflect.TypeFor[metav1.FieldsV1]():      "any",
	reflect.TypeFor[[]byte]():               "string",
}

type table map[string]map[string]string

// name describes a type: "string", "bool", "int32", "int64", "quantity", "time", "any", "[]" or
// "{}" before the type of the items, or the name of a type in the table.
func (t table) name(typ reflect.Type) (string, error) {
	if text, ok := special[typ]; ok {
		return text, nil
	}
	switch typ.Kind() {
	case reflect.Pointer:
		return t.name(typ.Elem())
	case reflect.Slice:
		text, err := t.name(typ.Elem())
		return "[]" + text, err
	case reflect.Map:
		text, err := t.name(typ.Elem())
		return "{}" + text, err
	case reflect.Bool, reflect.Int32, reflect.Int64, reflect.String:
		return typ.Kind().String(), nil
	case reflect.Struct:
		if _, done := t[typ.Name()]; done {
			return typ.Name(), nil
		}
		fields := map[string]string{}
		t[typ.Name()] = fields
		return typ.Name(), t.fields(typ, fields)
	}
	return "", fmt.Errorf("%s: no form in JSON is known", typ)
}

func (t table) fields(typ reflect.Type, fields map[string]string) error {
	for i := range typ.NumField() {
		field := typ.Field(i)
		name, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		if name == "-" {
			continue
		}
		if name == "" {
			if err := t.fields(field.Type, fields); err != nil {
				return err
			}
			continue
		}
		text, err := t.name(field.Type)
		if err != nil {
			return fmt.Errorf("%s.%s: %w", typ, field.Name, err)
		}
		fields[name] = text
	}
	return nil
}

func run() error {
	out := table{}
	for _, typ := range []reflect.Type{
		reflect.TypeFor[resourceapi.ResourceSlice](),
		reflect.TypeFor[resourceapi.DeviceClass](),
		reflect.TypeFor[resourceapi.ResourceClaim](),
		reflect.TypeFor[v1.Node](),
	} {
		if _, err := out.name(typ); err != nil {
			return err
		}
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetIndent("", " ")
	return encoder.Encode(out)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "fielddump:", err)
		os.Exit(1)
	}
}
