// Command cdi answers with what the library of container runtimes makes of folders of CDI specs:
// a line of JSON in, a line of JSON out; ci/upstream/README.md has their fields.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	oci "github.com/opencontainers/runtime-spec/specs-go"
	cdi "tags.cncf.io/container-device-interface/pkg/cdi"
)

type question struct {
	ID      string              `json:"id"`
	Folders []map[string]string `json:"folders"`
	Inject  []string            `json:"inject"`
}

type answer struct {
	ID        string              `json:"id"`
	Devices   map[string]string   `json:"devices"`
	Errors    map[string][]string `json:"errors"`
	Minimum   map[string]string   `json:"minimum"`
	Injected  *oci.Spec           `json:"injected,omitempty"`
	Refused   string              `json:"refused,omitempty"`
	Panic     string              `json:"panic,omitempty"`
	Malformed string              `json:"malformed,omitempty"`
}

func main() {
	scratch := flag.String("scratch", "", "where folders are written; default: the usual place")
	flag.Parse()
	root, err := os.MkdirTemp(*scratch, "cdi-oracle-")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	defer os.RemoveAll(root)
	reader := bufio.NewReaderSize(os.Stdin, 1<<20)
	writer := json.NewEncoder(os.Stdout)
	writer.SetEscapeHTML(false)
	for number := 0; ; number++ {
		line, err := reader.ReadBytes('\n')
		if len(line) == 0 && err != nil {
			return
		}
		folder := filepath.Join(root, strconv.Itoa(number))
		_ = writer.Encode(reply(line, folder))
		os.RemoveAll(folder)
	}
}

// reply answers one question; a panic of the library is an answer, too.
func reply(line []byte, root string) (result answer) {
	var asked question
	if err := json.Unmarshal(line, &asked); err != nil {
		return answer{Malformed: err.Error()}
	}
	defer func() {
		if caught := recover(); caught != nil {
			result = answer{ID: asked.ID, Panic: fmt.Sprint(caught)}
		}
	}()
	folders, err := write(asked.Folders, root)
	if err != nil {
		return answer{ID: asked.ID, Malformed: err.Error()}
	}
	cache, err := cdi.NewCache(cdi.WithAutoRefresh(false), cdi.WithSpecDirs(folders...))
	if err != nil {
		return answer{ID: asked.ID, Refused: err.Error()}
	}
	short := func(path string) string { return strings.TrimPrefix(path, root+"/") }
	result = answer{
		ID:      asked.ID,
		Devices: map[string]string{},
		Errors:  map[string][]string{},
		Minimum: map[string]string{},
	}
	for path, errs := range cache.GetErrors() {
		for _, one := range errs {
			text := strings.ReplaceAll(one.Error(), root+"/", "")
			result.Errors[short(path)] = append(result.Errors[short(path)], text)
		}
	}
	for _, name := range cache.ListDevices() {
		result.Devices[name] = short(cache.GetDevice(name).GetSpec().GetPath())
	}
	for _, vendor := range cache.ListVendors() {
		for _, spec := range cache.GetVendorSpecs(vendor) {
			if version, err := cdi.MinimumRequiredVersion(spec.Spec); err == nil {
				result.Minimum[short(spec.GetPath())] = version
			}
		}
	}
	if asked.Inject != nil {
		container := &oci.Spec{}
		if _, err := cache.InjectDevices(container, asked.Inject...); err != nil {
			result.Refused = strings.ReplaceAll(err.Error(), root+"/", "")
		} else {
			result.Injected = container
		}
	}
	return result
}

// write makes the folders: each file's name with its text, and the paths of the folders in order.
func write(folders []map[string]string, root string) ([]string, error) {
	var paths []string
	for number, files := range folders {
		folder := filepath.Join(root, strconv.Itoa(number))
		if err := os.MkdirAll(folder, 0o755); err != nil {
			return nil, err
		}
		paths = append(paths, folder)
		for name, text := range files {
			if filepath.Base(name) != name {
				return nil, fmt.Errorf("%q is not the name of a file", name)
			}
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
				return nil, err
			}
		}
	}
	return paths, nil
}
