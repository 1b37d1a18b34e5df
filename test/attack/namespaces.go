package main

import (
	"errors"
	"fmt"
	"os"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// spaceFlags are the kinds of namespaces that one thread of many can make for itself.
var spaceFlags = map[string]int{
	"net": unix.CLONE_NEWNET, "mnt": unix.CLONE_NEWNS | unix.CLONE_FS, "ipc": unix.CLONE_NEWIPC,
	"uts": unix.CLONE_NEWUTS, "cgroup": unix.CLONE_NEWCGROUP,
}

// makeNamespaces makes namespaces of a kind, and prints how many the kernel allowed. Each uses host
// memory that is not charged to the node. It first raises the limits of its user namespace.
func makeNamespaces(args []string) error {
	if len(args) != 2 || spaceFlags[args[0]] == 0 {
		return errors.New("namespaces net|mnt|ipc|uts|cgroup COUNT")
	}
	kind := args[0]
	count, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	if err := os.WriteFile("/proc/sys/user/max_"+kind+"_namespaces", []byte("100000"), 0); err != nil {
		fmt.Fprintln(os.Stderr, "the limit stays:", err)
	}
	made := make(chan error)
	all := 0
	for ; all < count; all++ {
		go func() {
			runtime.LockOSThread() // the thread ends with the program
			made <- unix.Unshare(spaceFlags[kind])
			select {}
		}()
		if err := <-made; err != nil {
			break
		}
	}
	fmt.Println(all)
	return nil
}
