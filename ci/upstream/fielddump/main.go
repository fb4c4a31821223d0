// Command fielddump prints the fields of the Kubernetes objects that this repository reads and
// writes, as JSON: the kinds in each version, and type -> field -> type.
//
// Fields that do not exist are refused, as strict decoding in Go does: in problems for the
// allocator, in scenarios, and by the API server of the reference. All of them work from this table,
// so it is generated from the API types of one Kubernetes minor:
//
//	go run ./fielddump > ../../reference_allocator/data/fields-1.37.json
//
// With -numbers it prints type -> field's number in protobuf -> field's name; a name begins with *
// where the Go field is a pointer, so that an empty value counts:
//
//	go run ./fielddump -numbers > ../../kubesim/front/numbers-1.37.json
//
// With -forms it prints type -> field -> how Go writes it: "pointer" unless it is nil, "nullable" as
// null if it is nil, "null" as null if it is empty, "always" even if it is empty. Any other field is
// left out if it is empty:
//
//	go run ./fielddump -forms > ../../kubesim/forms-1.37.json
//
// With -names it prints type -> its fields in Go, for the types of resource.k8s.io and the others
// that errors print:
//
//	go run ./fielddump -names > ../../kubesim/names-1.37.json
//
// With -owners it prints type -> its fields with an owner of their own otherwise than by default:
// "atomic" for a map or struct with one owner for all of it, "set", or "map" and the keys of a list of
// structs, with their defaults. The field "" is the type itself. Any other list has one owner.
//
//	go run ./fielddump -owners > ../../kubesim/owners-1.37.json
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"os/exec"
	"reflect"
	"regexp"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	resourcev1alpha3 "k8s.io/api/resource/v1alpha3"
	resourcev1beta1 "k8s.io/api/resource/v1beta1"
	resourcev1beta2 "k8s.io/api/resource/v1beta2"
	schedulingv1 "k8s.io/api/scheduling/v1"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// kinds has a value of every kind, by the apiVersion in which it is served.
var kinds = map[string][]any{
	"v1":       {corev1.Event{}, corev1.Namespace{}, corev1.Node{}, corev1.Pod{}, corev1.ResourceQuota{}},
	"apps/v1":  {appsv1.DaemonSet{}, appsv1.Deployment{}, appsv1.ReplicaSet{}, appsv1.StatefulSet{}},
	"batch/v1": {batchv1.Job{}},
	"resource.k8s.io/v1": {
		resourcev1.DeviceClass{}, resourcev1.DeviceTaintRule{}, resourcev1.ResourceClaim{},
		resourcev1.ResourceClaimTemplate{}, resourcev1.ResourceSlice{},
	},
	"resource.k8s.io/v1beta1": {
		resourcev1beta1.DeviceClass{}, resourcev1beta1.ResourceClaim{},
		resourcev1beta1.ResourceClaimTemplate{}, resourcev1beta1.ResourceSlice{},
	},
	"resource.k8s.io/v1beta2": {
		resourcev1beta2.DeviceClass{}, resourcev1beta2.DeviceTaintRule{},
		resourcev1beta2.ResourceClaim{}, resourcev1beta2.ResourceClaimTemplate{},
		resourcev1beta2.ResourceSlice{},
	},
	"resource.k8s.io/v1alpha3": {
		resourcev1alpha3.DeviceTaintRule{}, resourcev1alpha3.ResourcePoolStatusRequest{},
	},
	"scheduling.k8s.io/v1":      {schedulingv1.PriorityClass{}},
	"scheduling.k8s.io/v1beta1": {schedulingv1beta1.PodGroup{}},
}

// special types have a form in JSON that their Go type does not show.
var special = map[reflect.Type]string{
	reflect.TypeFor[resource.Quantity]():    "quantity",
	reflect.TypeFor[metav1.Time]():          "time",
	reflect.TypeFor[metav1.MicroTime]():     "time",
	reflect.TypeFor[runtime.RawExtension](): "any",
	reflect.TypeFor[metav1.FieldsV1]():      "any",
	reflect.TypeFor[intstr.IntOrString]():   "intorstring",
	reflect.TypeFor[[]byte]():               "string",
}

type table map[string]map[string]string

// numbers collects the numbers of fields, beside what the table collects.
var numbers = table{}

// isNamed says of which types the fields in Go are collected.
func isNamed(owner string) bool {
	return strings.HasPrefix(owner, "resource/") || strings.HasPrefix(owner, "core/v1.NodeSelector") ||
		owner == "meta/v1.Condition" || owner == "meta/v1.ManagedFieldsEntry" ||
		owner == "meta/v1.ObjectMeta" || owner == "meta/v1.OwnerReference" ||
		owner == "core/v1.NodeStatus" || owner == "core/v1.PodResourceClaim" ||
		owner == "core/v1.ResourceRequirements" || owner == "core/v1.Taint" || owner == "core/v1.Toleration"
}

// goNames collects the fields of types in their order: the Go name of each, "=" and its
// name in JSON where that is not the same with a small letter, ":" and its type where that is a named
// scalar or a map of which such are keys.
var goNames = map[string][]string{}

func describe(field reflect.StructField, name string) string {
	text := field.Name
	if strings.ToLower(text[:1])+text[1:] != name {
		text += "=" + name
	}
	typ := field.Type
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	isNamed := typ.PkgPath() != "" && typ.Kind() != reflect.Struct
	if _, ok := special[typ]; !ok && isNamed || typ.Kind() == reflect.Map && typ.Key().PkgPath() != "" {
		text += ":" + typ.String()
	}
	return text
}

// forms collects how fields are written, beside what the table collects.
var forms = table{}

// form is how encoding/json writes a field; "" leaves out an empty value.
func form(field reflect.StructField) string {
	options := strings.Split(field.Tag.Get("json"), ",")[1:]
	kind := field.Type.Kind()
	nilable := kind == reflect.Slice || kind == reflect.Map ||
		field.Type == reflect.TypeFor[metav1.Time]() || field.Type == reflect.TypeFor[metav1.MicroTime]() ||
		field.Type == reflect.TypeFor[runtime.RawExtension]()
	omits := slices.Contains(options, "omitzero") ||
		// Of a struct omitempty has no effect.
		slices.Contains(options, "omitempty") && kind != reflect.Struct
	switch {
	case !omits && kind == reflect.Pointer:
		return "nullable"
	case !omits && nilable:
		return "null"
	case !omits:
		return "always"
	case kind == reflect.Pointer:
		return "pointer"
	}
	return ""
}

// owners collects who may own what of a type, from the markers in its comments: no Go value has them.
var owners = table{}

var marker = regexp.MustCompile(`(?m)^\s*\+(listType|listMapKey|mapType|structType|default)=(\S+)$`)

// ownersOf is the text of the markers of a field or a type; defaults has those of the list's items.
func ownersOf(markers map[string][]string, defaults map[string]string) string {
	for _, name := range []string{"listType", "mapType", "structType"} {
		switch values := markers[name]; {
		case len(values) == 0 || values[0] == "granular":
		case values[0] != "map":
			return values[0]
		default:
			keys := markers["listMapKey"]
			for i, key := range keys {
				if text, ok := defaults[key]; ok {
					keys[i] = key + "=" + text
				}
			}
			return "map:" + strings.Join(keys, ",")
		}
	}
	return ""
}

func markersOf(comments *ast.CommentGroup) map[string][]string {
	found := map[string][]string{}
	if comments == nil {
		return found
	}
	var lines []string
	for _, comment := range comments.List {
		lines = append(lines, strings.TrimPrefix(comment.Text, "//"))
	}
	for _, match := range marker.FindAllStringSubmatch(strings.Join(lines, "\n"), -1) {
		found[match[1]] = append(found[match[1]], strings.Trim(match[2], `"`))
	}
	return found
}

// source is a struct as it stands in its package.
type source struct {
	markers map[string][]string
	fields  map[string]map[string][]string
}

var sources = map[string]map[string]source{}

// parse reads the structs of a package, by their names.
func parse(pkg string) (map[string]source, error) {
	if structs, ok := sources[pkg]; ok {
		return structs, nil
	}
	structs := map[string]source{}
	sources[pkg] = structs
	dir, err := exec.Command("go", "list", "-f", "{{.Dir}}", pkg).Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", pkg, err)
	}
	parsed, err := parser.ParseDir(token.NewFileSet(), strings.TrimSpace(string(dir)), nil, parser.ParseComments)
	if err != nil {
		return nil, err
	}
	for _, part := range parsed {
		ast.Inspect(part, func(node ast.Node) bool {
			decl, ok := node.(*ast.GenDecl)
			if !ok || decl.Tok != token.TYPE {
				return true
			}
			for _, spec := range decl.Specs {
				typ, isStruct := spec.(*ast.TypeSpec).Type.(*ast.StructType)
				if !isStruct {
					continue
				}
				found := source{markersOf(decl.Doc), map[string]map[string][]string{}}
				for _, field := range typ.Fields.List {
					for _, name := range field.Names {
						found.fields[name.Name] = markersOf(field.Doc)
					}
				}
				structs[spec.(*ast.TypeSpec).Name.Name] = found
			}
			return false
		})
	}
	return structs, nil
}

// note adds what a type's comments say of the owners of a field, or of the type if it has no name.
func note(typ reflect.Type, field reflect.StructField, name string) error {
	structs, err := parse(typ.PkgPath())
	if err != nil {
		return err
	}
	defaults := map[string]string{}
	if element := field.Type; element != nil && element.Kind() == reflect.Slice && element.Elem().Kind() == reflect.Struct {
		items, err := parse(element.Elem().PkgPath())
		if err != nil {
			return err
		}
		for i := range element.Elem().NumField() {
			inner := element.Elem().Field(i)
			key, _, _ := strings.Cut(inner.Tag.Get("json"), ",")
			if values := items[element.Elem().Name()].fields[inner.Name]["default"]; len(values) > 0 {
				defaults[key] = values[0]
			} else if inner.Type.Kind() == reflect.String && form(inner) == "always" {
				defaults[key] = "" // as in the schema that is published
			}
		}
	}
	markers := structs[typ.Name()].markers
	if name != "" {
		markers = structs[typ.Name()].fields[field.Name]
	}
	text, isList := ownersOf(markers, defaults), field.Type != nil && field.Type.Kind() == reflect.Slice
	if text == "" || text == "atomic" && isList {
		return nil
	}
	owner := typeName(typ)
	if owners[owner] == nil {
		owners[owner] = map[string]string{}
	}
	owners[owner][name] = text
	return nil
}

// typeName is core/v1.Pod for k8s.io/api/core/v1.Pod.
func typeName(typ reflect.Type) string {
	parts := strings.Split(typ.PkgPath(), "/")
	return strings.Join(parts[len(parts)-2:], "/") + "." + typ.Name()
}

// name describes a type: "string", "bool", "int32", "int64", "quantity", "time", "intorstring",
// "any", "[]" or "map[string]" before the type of the items, or the name of a type in the table.
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
		return "map[string]" + text, err
	case reflect.Bool, reflect.Int32, reflect.Int64, reflect.String:
		return typ.Kind().String(), nil
	case reflect.Struct:
		name := typeName(typ)
		if _, done := t[name]; done {
			return name, nil
		}
		fields := map[string]string{}
		t[name] = fields
		if err := note(typ, reflect.StructField{}, ""); err != nil {
			return "", err
		}
		return name, t.fields(typ, fields)
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
		if err := note(typ, field, name); err != nil {
			return err
		}
		if owner := typeName(typ); isNamed(owner) && !slices.Contains(goNames[owner], describe(field, name)) {
			goNames[owner] = append(goNames[owner], describe(field, name))
		}
		if text := form(field); text != "" {
			owner := typeName(typ)
			if forms[owner] == nil {
				forms[owner] = map[string]string{}
			}
			forms[owner][name] = text
		}
		// As in `protobuf:"bytes,1,opt,name=metadata"`.
		if parts := strings.Split(field.Tag.Get("protobuf"), ","); len(parts) > 1 {
			if field.Type.Kind() == reflect.Pointer {
				name = "*" + name
			}
			owner := typeName(typ)
			if numbers[owner] == nil {
				numbers[owner] = map[string]string{}
			}
			numbers[owner][parts[1]] = name
		}
	}
	return nil
}

// write prints an object with a line for each of its keys, so that a change of the API shows.
func write[V any](out *bytes.Buffer, object map[string]V) error {
	var keys []string
	for key := range object {
		keys = append(keys, key)
	}
	slices.Sort(keys)
	for i, key := range keys {
		line, err := json.Marshal(object[key])
		if err != nil {
			return err
		}
		end := ",\n"
		if i == len(keys)-1 {
			end = "\n"
		}
		fmt.Fprintf(out, "  %q: %s%s", key, line, end)
	}
	return nil
}

// runFields prints what was collected of every type's fields.
func runFields[V any](collected map[string]V) error {
	for _, values := range kinds {
		for _, value := range values {
			if _, err := (table{}).name(reflect.TypeOf(value)); err != nil {
				return err
			}
		}
	}
	out := &bytes.Buffer{}
	out.WriteString("{\n")
	if err := write(out, collected); err != nil {
		return err
	}
	out.WriteString("}\n")
	_, err := os.Stdout.Write(out.Bytes())
	return err
}

func run() error {
	types, roots := table{}, map[string]string{}
	for apiVersion, values := range kinds {
		for _, value := range values {
			typ := reflect.TypeOf(value)
			name, err := types.name(typ)
			if err != nil {
				return err
			}
			roots[apiVersion+"/"+typ.Name()] = name
		}
	}
	out := &bytes.Buffer{}
	out.WriteString("{\n \"roots\": {\n")
	if err := write(out, roots); err != nil {
		return err
	}
	out.WriteString(" },\n \"types\": {\n")
	if err := write(out, types); err != nil {
		return err
	}
	out.WriteString(" }\n}\n")
	_, err := os.Stdout.Write(out.Bytes())
	return err
}

func main() {
	dump := run
	if slices.Contains(os.Args[1:], "-numbers") {
		dump = func() error { return runFields(numbers) }
	}
	if slices.Contains(os.Args[1:], "-names") {
		dump = func() error { return runFields(goNames) }
	}
	if slices.Contains(os.Args[1:], "-forms") {
		dump = func() error { return runFields(forms) }
	}
	if slices.Contains(os.Args[1:], "-owners") {
		dump = func() error { return runFields(owners) }
	}
	if err := dump(); err != nil {
		fmt.Fprintln(os.Stderr, "fielddump:", err)
		os.Exit(1)
	}
}
