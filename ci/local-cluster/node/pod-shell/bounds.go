package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"time"
)

// timeout does `timeout SECONDS COMMAND ARGUMENT...`: the command's processes are killed with it.
func timeout(args []string) error {
	if len(args) < 2 {
		return errors.New("needs SECONDS COMMAND")
	}
	seconds, err := strconv.ParseFloat(args[0], 64)
	if err != nil {
		return err
	}
	limit, cancel := context.WithTimeout(context.Background(), time.Duration(seconds*float64(time.Second)))
	defer cancel()
	command := exec.CommandContext(limit, args[1], args[2:]...)
	command.Stdin, command.Stdout, command.Stderr = os.Stdin, os.Stdout, os.Stderr
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGKILL) }
	err = command.Run()
	var ended *exec.ExitError
	switch {
	case limit.Err() != nil:
		os.Exit(124)
	case errors.As(err, &ended):
		os.Exit(ended.ExitCode())
	}
	return err
}

// head does `head -c BYTES` of its standard input.
func head(args []string) error {
	if len(args) != 2 || args[0] != "-c" {
		return errors.New("needs -c BYTES")
	}
	bytes, err := strconv.ParseInt(args[1], 10, 64)
	if err != nil {
		return fmt.Errorf("-c: %w", err)
	}
	_, err = io.CopyN(os.Stdout, os.Stdin, bytes)
	if errors.Is(err, io.EOF) {
		return nil
	}
	return err
}
