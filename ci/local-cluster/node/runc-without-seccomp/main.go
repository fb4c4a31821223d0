// runc-without-seccomp calls the runc beside it, with the seccomp profile taken out of the container.
//
// runc can only set such a profile when it is linked with libseccomp, a C library whose headers a
// machine would need for the build. The kubelet asks for the runtime's default profile for every pod
// sandbox and cannot be told otherwise, and runc refuses what it cannot do. Which system calls a
// container may make has nothing to do with its devices, so the local cluster does without.
package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

func main() {
	if err := run(os.Args); err != nil {
		fmt.Fprintln(os.Stderr, "runc-without-seccomp:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	if bundle := newContainer(args); bundle != "" {
		if err := dropSeccomp(filepath.Join(bundle, "config.json")); err != nil {
			return err
		}
	}
	self, err := os.Executable()
	if err != nil {
		return err
	}
	runc := filepath.Join(filepath.Dir(self), "runc")
	return syscall.Exec(runc, append([]string{runc}, args[1:]...), os.Environ())
}

// newContainer returns the bundle directory of `create` and `run`, "" for every other command.
func newContainer(args []string) string {
	creates, bundle := false, ""
	for i, arg := range args {
		switch {
		case arg == "create" || arg == "run":
			creates = true
		case (arg == "--bundle" || arg == "-b") && i+1 < len(args):
			bundle = args[i+1]
		case strings.HasPrefix(arg, "--bundle="):
			bundle = strings.TrimPrefix(arg, "--bundle=")
		}
	}
	if !creates {
		return ""
	}
	return bundle
}

// dropSeccomp removes linux.seccomp from an OCI runtime configuration and leaves the rest as it is.
func dropSeccomp(path string) error {
	text, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var config, linux map[string]json.RawMessage
	if err := json.Unmarshal(text, &config); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := json.Unmarshal(config["linux"], &linux); err != nil {
		return fmt.Errorf("%s: linux: %w", path, err)
	}
	if _, found := linux["seccomp"]; !found {
		return nil
	}
	delete(linux, "seccomp")
	if config["linux"], err = json.Marshal(linux); err != nil {
		return err
	}
	var out bytes.Buffer
	if err := json.NewEncoder(&out).Encode(config); err != nil {
		return err
	}
	return os.WriteFile(path, out.Bytes(), 0o600)
}
