// Command celdump prints the declarations of the CEL environment that Kubernetes uses for device
// selectors, as JSON: functions with their overloads, and macros.
//
// Our own type checker works from these tables, so they are generated from the real environments of
// the Kubernetes minors instead of being copied by hand:
//
//	ci/upstream/build 1.36 celdump && build/oracle/celdump-1.36 > reference_allocator/cel/environment/data/kubernetes-1.36.json
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"sort"

	"google.golang.org/protobuf/reflect/protoreflect"
	"google.golang.org/protobuf/reflect/protoregistry"

	"k8s.io/apiserver/pkg/cel/environment"
	dracel "k8s.io/dynamic-resource-allocation/cel"

	"dra-conformance.dev/upstream/celgo"
)

type overload struct {
	ID         string   `json:"id"`
	Member     bool     `json:"member,omitempty"`
	NonStrict  bool     `json:"nonStrict,omitempty"`
	Args       []string `json:"args"`
	Result     string   `json:"result"`
	TypeParams []string `json:"typeParams,omitempty"`
}

type function struct {
	Name      string     `json:"name"`
	Overloads []overload `json:"overloads"`
}

type macro struct {
	Name     string `json:"name"`
	Args     int    `json:"args"`
	Receiver bool   `json:"receiver,omitempty"`
	Varargs  bool   `json:"varargs,omitempty"`
}

// variant is what one type of environment makes of a choice of features.
type variant struct {
	Stored             bool `json:"stored"`
	ConsumableCapacity bool `json:"consumableCapacity"`
	ListTypeAttributes bool `json:"listTypeAttributes"`
	// Overloads of the table that do not exist here.
	Absent []string `json:"absent"`
	// The static type of an attribute's value.
	Attribute string `json:"attribute"`
	// The fields of the variable "device".
	Fields []string `json:"fields"`
}

// named says how a type that is neither primitive nor list nor map behaves: "struct" or "opaque",
// and whether its name can be used as a value.
type named struct {
	Name  string `json:"name"`
	Kind  string `json:"kind"`
	Ident bool   `json:"ident,omitempty"`
}

// message is a type that "Name{field: value}" can name: a protobuf message, or one of the scalars
// that Kubernetes resolves the same way (those have no fields of their own).
type message struct {
	Name   string            `json:"name"`
	Type   string            `json:"type"`
	Ident  bool              `json:"ident,omitempty"`
	Fields map[string]string `json:"fields,omitempty"`
}

// constant is a value of an enum, which an expression can name.
type constant struct {
	Name  string `json:"name"`
	Value int64  `json:"value"`
}

type table struct {
	Functions []function `json:"functions"`
	Macros    []macro    `json:"macros"`
	Types     []named    `json:"types"`
	Messages  []message  `json:"messages"`
	Constants []constant `json:"constants"`
	// One for each choice of features, for stored and for new expressions.
	Variants []variant `json:"variants"`
}

// choose sets the features of these names; a minor that does not know one has it neither on nor off.
func choose(consumableCapacity, listTypeAttributes bool) (out dracel.Features) {
	value := reflect.ValueOf(&out).Elem()
	for name, on := range map[string]bool{"EnableConsumableCapacity": consumableCapacity, "EnableListTypeAttributes": listTypeAttributes} {
		if field := value.FieldByName(name); field.IsValid() {
			field.SetBool(on)
		}
	}
	return out
}

func env(features dracel.Features, envType environment.Type) (*celgo.Env, error) {
	result := dracel.GetCompiler(features).CompileCELExpression("true", dracel.Options{EnvType: &envType})
	if result.Error != nil {
		return nil, result.Error
	}
	return result.Environment, nil
}

// typeText writes a type in full: cel-go's own String() shortens some.
func typeText(t *celgo.Type) string {
	text := t.TypeName()
	if t.Kind() == celgo.TypeKind && len(t.Parameters()) == 0 {
		return "type"
	}
	for i, p := range t.Parameters() {
		if i == 0 {
			text += "("
		} else {
			text += ", "
		}
		text += typeText(p)
	}
	if len(t.Parameters()) > 0 {
		text += ")"
	}
	if t.IsAssignableType(celgo.NullType) && t.Kind() != celgo.NullTypeKind && t.Kind() != celgo.DynKind && t.Kind() != celgo.AnyKind && t.Kind() != celgo.TypeParamKind {
		return "wrapper(" + text + ")"
	}
	return text
}

func functions(e *celgo.Env) []function {
	var out []function
	for name, decl := range e.Functions() {
		f := function{Name: name}
		if decl.IsDeclarationDisabled() {
			continue
		}
		for _, o := range decl.OverloadDecls() {
			item := overload{ID: o.ID(), Member: o.IsMemberFunction(), NonStrict: o.IsNonStrict(),
				Args: []string{}, Result: typeText(o.ResultType()), TypeParams: o.TypeParams()}
			for _, a := range o.ArgTypes() {
				item.Args = append(item.Args, typeText(a))
			}
			sort.Strings(item.TypeParams)
			f.Overloads = append(f.Overloads, item)
		}
		out = append(out, f)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// namedTypes lists all types that occur in the signatures, and the others with a name of their own.
func namedTypes(e *celgo.Env) []named {
	found := map[string]*celgo.Type{}
	var visit func(t *celgo.Type)
	visit = func(t *celgo.Type) {
		if t.Kind() != celgo.TypeParamKind {
			found[t.TypeName()] = t
		}
		for _, p := range t.Parameters() {
			visit(p)
		}
	}
	for _, decl := range e.Functions() {
		for _, o := range decl.OverloadDecls() {
			visit(o.ResultType())
			for _, a := range o.ArgTypes() {
				visit(a)
			}
		}
	}
	visit(celgo.NullType)
	visit(celgo.AnyType)
	var out []named
	for name, t := range found {
		item := named{Name: name}
		switch t.Kind() {
		case celgo.StructKind:
			item.Kind = "struct"
		case celgo.OpaqueKind:
			item.Kind = "opaque"
		default:
			item.Kind = "builtin"
		}
		_, item.Ident = e.CELTypeProvider().FindIdent(name)
		out = append(out, item)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out
}

// linked calls back for every protobuf message and enum of this program, nested ones included.
func linked(onMessage func(protoreflect.MessageDescriptor), onEnum func(protoreflect.EnumDescriptor)) {
	var visit func(messages protoreflect.MessageDescriptors, enums protoreflect.EnumDescriptors)
	visit = func(messages protoreflect.MessageDescriptors, enums protoreflect.EnumDescriptors) {
		for i := range enums.Len() {
			onEnum(enums.Get(i))
		}
		for i := range messages.Len() {
			onMessage(messages.Get(i))
			visit(messages.Get(i).Messages(), messages.Get(i).Enums())
		}
	}
	protoregistry.GlobalFiles.RangeFiles(func(file protoreflect.FileDescriptor) bool {
		visit(file.Messages(), file.Enums())
		return true
	})
}

// messages lists what can be named in "Name{}" and the enum values, as far as the environment knows
// them; the device's own type is described by the variants.
func messages(e *celgo.Env) (found []message, constants []constant) {
	provider := e.CELTypeProvider()
	add := func(name string, fields []string) {
		t, ok := provider.FindStructType(name)
		if !ok {
			return
		}
		item := message{Name: name, Type: typeText(t.Parameters()[0]), Fields: map[string]string{}}
		_, item.Ident = provider.FindIdent(name)
		for _, field := range fields {
			if f, ok := provider.FindStructFieldType(name, field); ok {
				item.Fields[field] = typeText(f.Type)
			}
		}
		found = append(found, item)
	}
	for _, name := range []string{"bool", "bytes", "double", "duration", "int", "null_type", "string", "timestamp", "uint", "list", "map"} {
		add(name, nil)
	}
	linked(func(m protoreflect.MessageDescriptor) {
		var fields []string
		for i := range m.Fields().Len() {
			fields = append(fields, string(m.Fields().Get(i).Name()))
		}
		add(string(m.FullName()), fields)
	}, func(enum protoreflect.EnumDescriptor) {
		for i := range enum.Values().Len() {
			name := string(enum.FullName()) + "." + string(enum.Values().Get(i).Name())
			if value, ok := provider.EnumValue(name).(celgo.Int); ok {
				constants = append(constants, constant{Name: name, Value: int64(value)})
			}
		}
	})
	sort.Slice(found, func(i, j int) bool { return found[i].Name < found[j].Name })
	sort.Slice(constants, func(i, j int) bool { return constants[i].Name < constants[j].Name })
	return found, constants
}

// describe compares one environment with the whole table.
func describe(all []function, stored, consumableCapacity, listTypeAttributes bool) (variant, error) {
	out := variant{Stored: stored, ConsumableCapacity: consumableCapacity, ListTypeAttributes: listTypeAttributes, Absent: []string{}}
	envType := environment.NewExpressions
	if stored {
		envType = environment.StoredExpressions
	}
	e, err := env(choose(consumableCapacity, listTypeAttributes), envType)
	if err != nil {
		return out, err
	}
	var known []string
	for _, f := range functions(e) {
		for _, o := range f.Overloads {
			known = append(known, o.ID)
		}
	}
	for _, f := range all {
		for _, o := range f.Overloads {
			if !slices.Contains(known, o.ID) {
				out.Absent = append(out.Absent, o.ID)
			}
		}
	}
	ast, issues := e.Compile(`device.attributes["a"].b`)
	if issues.Err() != nil {
		return out, issues.Err()
	}
	out.Attribute = typeText(ast.OutputType())
	device, issues := e.Compile("device")
	if issues.Err() != nil {
		return out, issues.Err()
	}
	names, found := e.CELTypeProvider().FindStructFieldNames(device.OutputType().TypeName())
	if !found || len(names) == 0 {
		// Kubernetes' provider does not list the fields of its own types.
		for _, name := range []string{"allowMultipleAllocations", "attributes", "capacity", "driver"} {
			if _, found := e.CELTypeProvider().FindStructFieldType(device.OutputType().TypeName(), name); found {
				names = append(names, name)
			}
		}
	}
	sort.Strings(names)
	out.Fields = names
	return out, nil
}

func run() error {
	stored, err := env(choose(true, true), environment.StoredExpressions)
	if err != nil {
		return err
	}
	out := table{Functions: functions(stored), Types: namedTypes(stored)}
	out.Messages, out.Constants = messages(stored)
	for _, m := range stored.Macros() {
		out.Macros = append(out.Macros, macro{Name: m.Function(), Args: m.ArgCount(), Receiver: m.IsReceiverStyle(), Varargs: m.ArgCount() == 0})
	}
	sort.SliceStable(out.Macros, func(i, j int) bool {
		a, b := out.Macros[i], out.Macros[j]
		return a.Name < b.Name || a.Name == b.Name && a.Args < b.Args
	})
	for _, isStored := range []bool{true, false} {
		for _, capacity := range []bool{false, true} {
			for _, lists := range []bool{false, true} {
				v, err := describe(out.Functions, isStored, capacity, lists)
				if err != nil {
					return err
				}
				out.Variants = append(out.Variants, v)
			}
		}
	}
	encoder := json.NewEncoder(os.Stdout)
	encoder.SetEscapeHTML(false)
	encoder.SetIndent("", " ")
	return encoder.Encode(out)
}

func main() {
	if err := run(); err != nil {
		fmt.Fprintln(os.Stderr, "celdump:", err)
		os.Exit(1)
	}
}
