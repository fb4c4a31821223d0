package main

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
)

// stat does `stat -c FORMAT FILE...` for %n (the name), %t and %T (major and minor, in hexadecimal).
func stat(args []string) error {
	if len(args) < 3 || args[0] != "-c" {
		return fmt.Errorf("needs -c FORMAT FILE...")
	}
	for _, path := range args[2:] {
		var found syscall.Stat_t
		if err := syscall.Stat(path, &found); err != nil {
			return &os.PathError{Op: "stat", Path: path, Err: err}
		}
		// gnu_dev_major and gnu_dev_minor of <sys/sysmacros.h>
		major := found.Rdev>>8&0xfff | found.Rdev>>32&^uint64(0xfff)
		minor := found.Rdev&0xff | found.Rdev>>12&^uint64(0xff)
		told := strings.NewReplacer(
			"%n", path, "%t", strconv.FormatUint(major, 16), "%T", strconv.FormatUint(minor, 16),
		)
		fmt.Println(told.Replace(args[1]))
	}
	return nil
}

// mknod does `mknod FILE c MAJOR MINOR`.
func mknod(args []string) error {
	if len(args) != 4 || args[1] != "c" {
		return fmt.Errorf("needs FILE c MAJOR MINOR")
	}
	major, err := strconv.ParseUint(args[2], 10, 12)
	if err != nil {
		return err
	}
	minor, err := strconv.ParseUint(args[3], 10, 20)
	if err != nil {
		return err
	}
	number := minor&0xff | major<<8 | minor&^0xff<<12
	if err := syscall.Mknod(args[0], syscall.S_IFCHR|0o666, int(number)); err != nil {
		return &os.PathError{Op: "mknod", Path: args[0], Err: err}
	}
	return nil
}
