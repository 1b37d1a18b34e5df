package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"

	"golang.org/x/sys/unix"
)

// The properties of a caller that must not reach a node.
const (
	keyName  = "orrery-attack"
	keyValue = "TICKET-OF-THE-CALLER"
	oddLimit = 777
)

// inherit runs a program as a careless caller would: with an open file and directory of the host, a
// key in the session keyring, a real-time class, one processor, and special limits.
func inherit(args []string) error {
	if len(args) == 0 {
		return errors.New("usage: inherit PROGRAM [ARGUMENT...]")
	}
	for fd, path := range map[int]string{7: "/etc/shadow", 8: "/"} {
		opened, err := unix.Open(path, unix.O_RDONLY, 0)
		if err != nil {
			return err
		}
		if err := unix.Dup3(opened, fd, 0); err != nil {
			return err
		}
		unix.Close(opened)
	}
	runtime.LockOSThread() // a session keyring is one of a thread
	if _, err := unix.KeyctlInt(unix.KEYCTL_JOIN_SESSION_KEYRING, 0, 0, 0, 0); err != nil {
		return err
	}
	key, err := unix.AddKey("user", keyName, []byte(keyValue), unix.KEY_SPEC_SESSION_KEYRING)
	if err != nil {
		return err
	}
	if err := unix.KeyctlSetperm(key, 0x3f3f3f3f); err != nil { // to processes that do not possess it, too
		return err
	}
	if err := unix.SchedSetAttr(0, &unix.SchedAttr{Size: unix.SizeofSchedAttr, Policy: unix.SCHED_BATCH, Nice: 5},
		0); err != nil {
		return err
	}
	var first unix.CPUSet
	first.Set(0)
	if err := unix.SchedSetaffinity(0, &first); err != nil {
		return err
	}
	var core unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &core); err != nil {
		return err
	}
	core.Cur = oddLimit
	if err := unix.Setrlimit(unix.RLIMIT_CORE, &core); err != nil {
		return err
	}
	return unix.Exec(args[0], args, os.Environ())
}

// opensItself are the files that the Go runtime opens in every program.
var opensItself = map[string]bool{
	"anon_inode:[eventpoll]": true, "anon_inode:[eventfd]": true,
	"cpu.cfs_quota_us": true, "cpu.cfs_period_us": true, "cpu.max": true,
}

// inherited prints, one per line, what this program has inherited from such a caller.
func inherited([]string) error {
	if err := printDescriptors(); err != nil {
		return err
	}
	if key, err := unix.KeyctlSearch(unix.KEY_SPEC_SESSION_KEYRING, "user", keyName, 0); err == nil {
		var value [64]byte
		n, err := unix.KeyctlBuffer(unix.KEYCTL_READ, key, value[:], 0)
		fmt.Printf("key: %s (%v)\n", value[:max(n, 0)], err)
	}
	class, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return err
	}
	if class.Policy != unix.SCHED_NORMAL || class.Nice != 0 {
		fmt.Printf("class: %d, nice %d\n", class.Policy, class.Nice)
	}
	var on unix.CPUSet
	if err := unix.SchedGetaffinity(0, &on); err != nil {
		return err
	}
	if on.Count() == 1 {
		fmt.Println("processors: 1")
	}
	var core unix.Rlimit
	if err := unix.Getrlimit(unix.RLIMIT_CORE, &core); err != nil {
		return err
	}
	if core.Cur == oddLimit {
		fmt.Println("limit of core files:", core.Cur)
	}
	return nil
}

// printDescriptors prints each descriptor above standard error that this program was started with,
// and what it refers to.
func printDescriptors() error {
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
		fmt.Println("descriptor:", name, target)
	}
	return nil
}
