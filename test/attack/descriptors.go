package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
)

// opensItself are the files that the runtime of Go opens in every program.
var opensItself = map[string]bool{
	"anon_inode:[eventpoll]": true, "anon_inode:[eventfd]": true,
	"cpu.cfs_quota_us": true, "cpu.cfs_period_us": true, "cpu.max": true,
}

// listDescriptors prints each descriptor above standard error that this process was born with, and where it leads. A
// descriptor of the caller's would let a node read and write what only the caller may.
func listDescriptors([]string) error {
	const dir = "/proc/self/fd"
	own, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer own.Close()
	names, err := own.Readdirnames(-1)
	if err != nil {
		return err
	}
	for _, name := range names {
		n, err := strconv.Atoi(name)
		if err != nil || n <= 2 || n == int(own.Fd()) {
			continue
		}
		target, err := os.Readlink(dir + "/" + name)
		if err != nil || opensItself[filepath.Base(target)] {
			continue
		}
		fmt.Println(name, target)
	}
	return nil
}
