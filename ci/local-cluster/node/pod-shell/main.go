// pod-shell is all that is in the image of scenario pods: a POSIX shell and the few commands that
// scenarios use, in one static program that acts as what it is called (sh, env, find, ...).
//
// The image cannot come from a registry, which a build machine may not reach, nor from the machine's
// busybox, which it may not have.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"mvdan.cc/sh/v3/interp"
	"mvdan.cc/sh/v3/syntax"
)

var commands = map[string]func(args []string) error{
	"cat":      cat,
	"echo":     echo,
	"env":      env,
	"find":     find,
	"head":     head,
	"hostname": hostname,
	"ls":       ls,
	"mknod":    mknod,
	"pause":    pause,
	"sh":       shell,
	"sleep":    sleep,
	"stat":     stat,
	"timeout":  timeout,
}

func main() {
	name := filepath.Base(os.Args[0])
	command, known := commands[name]
	if !known {
		fmt.Fprintf(os.Stderr, "%s: no such command\n", name)
		os.Exit(127)
	}
	err := command(os.Args[1:])
	var status interp.ExitStatus
	if errors.As(err, &status) {
		os.Exit(int(status))
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "%s: %v\n", name, err)
		os.Exit(1)
	}
}

// shell runs `sh -c COMMAND`, `sh FILE ARGUMENT...`, or the commands of its standard input as they come.
func shell(args []string) error {
	runner, err := interp.New(
		interp.StdIO(os.Stdin, os.Stdout, os.Stderr),
		interp.CallHandler(trapSignals),
	)
	if err != nil {
		return err
	}
	parser := syntax.NewParser(syntax.Variant(syntax.LangPOSIX))
	if len(args) == 0 {
		for stmts, err := range parser.InteractiveSeq(os.Stdin) {
			if err != nil {
				return err
			}
			for _, stmt := range stmts {
				err := runner.Run(context.Background(), stmt)
				if runner.Exited() {
					return err
				}
			}
		}
		return nil
	}
	var source io.Reader
	if args[0] == "-c" {
		if len(args) < 2 {
			return errors.New("-c needs a command")
		}
		source = strings.NewReader(args[1])
	} else {
		file, err := os.Open(args[0])
		if err != nil {
			return err
		}
		defer file.Close()
		source = file
		// After --, as an argument may look like an option of the shell.
		if err := interp.Params(append([]string{"--"}, args[1:]...)...)(runner); err != nil {
			return err
		}
	}
	program, err := parser.Parse(source, "")
	if err != nil {
		return err
	}
	return runner.Run(context.Background(), program)
}

var signals = map[string]os.Signal{
	"HUP": syscall.SIGHUP, "INT": syscall.SIGINT, "TERM": syscall.SIGTERM,
	"1": syscall.SIGHUP, "2": syscall.SIGINT, "15": syscall.SIGTERM,
}

// trapSignals adds to the interpreter's `trap`, which knows no signals, the form `trap ACTION
// SIGNAL...`. The action runs at once and sees none of the shell's variables.
func trapSignals(_ context.Context, args []string) ([]string, error) {
	if args[0] != "trap" || len(args) < 3 {
		return args, nil
	}
	caught := make(chan os.Signal, 1)
	for _, name := range args[2:] {
		number, known := signals[strings.TrimPrefix(name, "SIG")]
		if !known {
			return args, nil
		}
		signal.Notify(caught, number)
	}
	action, err := syntax.NewParser().Parse(strings.NewReader(args[1]), "trap")
	if err != nil {
		return nil, err
	}
	go func() {
		for range caught {
			runner, err := interp.New(interp.StdIO(nil, os.Stdout, os.Stderr))
			if err == nil {
				err = runner.Run(context.Background(), action)
			}
			var status interp.ExitStatus
			switch {
			case errors.As(err, &status):
				os.Exit(int(status))
			case err != nil:
				fmt.Fprintln(os.Stderr, "trap:", err)
				os.Exit(1)
			case runner.Exited():
				os.Exit(0)
			}
		}
	}()
	return []string{"true"}, nil
}

// pause holds a pod's namespaces until it is told to end, and waits for the processes left to it.
func pause([]string) error {
	caught := make(chan os.Signal, 8)
	signal.Notify(caught, syscall.SIGCHLD, syscall.SIGINT, syscall.SIGTERM)
	for number := range caught {
		if number != syscall.SIGCHLD {
			return nil
		}
		for pid := 1; pid > 0; {
			pid, _ = syscall.Wait4(-1, nil, syscall.WNOHANG, nil)
		}
	}
	return nil
}

func cat(args []string) error {
	if len(args) == 0 {
		_, err := io.Copy(os.Stdout, os.Stdin)
		return err
	}
	for _, path := range args {
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		_, err = io.Copy(os.Stdout, file)
		file.Close()
		if err != nil {
			return err
		}
	}
	return nil
}

func echo(args []string) error {
	_, err := fmt.Println(strings.Join(args, " "))
	return err
}

func env(args []string) error {
	if len(args) > 0 {
		return errors.New("takes no arguments here")
	}
	for _, line := range os.Environ() {
		fmt.Println(line)
	}
	return nil
}

func hostname([]string) error {
	name, err := os.Hostname()
	fmt.Println(name)
	return err
}

func ls(args []string) error {
	if len(args) == 0 {
		args = []string{"."}
	}
	for _, path := range args {
		entries, err := os.ReadDir(path)
		if err != nil {
			return err
		}
		for _, entry := range entries {
			fmt.Println(entry.Name())
		}
	}
	return nil
}

func sleep(args []string) error {
	if len(args) != 1 {
		return errors.New("needs a number of seconds, or infinity")
	}
	if args[0] == "infinity" {
		select {}
	}
	seconds, err := strconv.ParseFloat(args[0], 64)
	if err != nil {
		return err
	}
	time.Sleep(time.Duration(seconds * float64(time.Second)))
	return nil
}
