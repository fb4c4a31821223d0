package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// find does `find PATH [-type c|d|f|l] [-name PATTERN] [-exec COMMAND ;]`, all of which must hold.
// Like find(1) it names what it cannot read and goes on.
func find(args []string) error {
	if len(args) == 0 {
		return fmt.Errorf("needs a directory")
	}
	root, rest := args[0], args[1:]
	pattern, kind := "", ""
	var command []string
	for len(rest) > 1 {
		switch rest[0] {
		case "-type":
			kind, rest = rest[1], rest[2:]
		case "-name":
			pattern, rest = rest[1], rest[2:]
		case "-exec":
			end := slices.Index(rest, ";")
			if end < 2 {
				return fmt.Errorf("-exec needs a command and a ';'")
			}
			command, rest = rest[1:end], rest[end+1:]
		default:
			return fmt.Errorf("%s: not supported", rest[0])
		}
	}
	if len(rest) > 0 {
		return fmt.Errorf("%s: not supported, or its argument is missing", rest[0])
	}
	if kind != "" && !strings.Contains("cdfl", kind) {
		return fmt.Errorf("-type %s: not supported", kind)
	}
	failed := false
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			fmt.Fprintln(os.Stderr, "find:", err)
			failed = true
			return nil
		}
		if kind != "" && kind != letter(entry.Type()) {
			return nil
		}
		if pattern != "" {
			if matches, err := filepath.Match(pattern, entry.Name()); err != nil || !matches {
				return err
			}
		}
		if command == nil {
			fmt.Println(path)
			return nil
		}
		words := make([]string, len(command))
		for i, word := range command {
			words[i] = strings.ReplaceAll(word, "{}", path)
		}
		child := exec.Command(words[0], words[1:]...)
		child.Stdin, child.Stdout, child.Stderr = os.Stdin, os.Stdout, os.Stderr
		return child.Run()
	})
	if err == nil && failed {
		err = fmt.Errorf("not everything could be read")
	}
	return err
}

func letter(mode fs.FileMode) string {
	switch {
	case mode&fs.ModeCharDevice != 0:
		return "c"
	case mode.IsDir():
		return "d"
	case mode.IsRegular():
		return "f"
	case mode&fs.ModeSymlink != 0:
		return "l"
	}
	return "?"
}
