package lxc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/image/rootfs"
	"orrery/internal/tree"
)

// spaces gives a process for each mount namespace that only some of the node's processes have, other than those of some
// processes.
func (c container) spaces(but ...int) []int {
	seen := map[string]bool{"": true}
	space := func(pid int) string {
		name, _ := os.Readlink(fmt.Sprintf("/proc/%d/ns/mnt", pid))
		return name
	}
	for _, pid := range but {
		seen[space(pid)] = true
	}
	var all []int
	for _, pid := range c.group().Processes() {
		if name := space(pid); !seen[name] {
			seen[name] = true
			all = append(all, pid)
		}
	}
	return all
}

// inSpace does some work on a thread whose mount namespace is that of a process, with the root that was first there; table gives
// the mounts that the thread sees.
func inSpace(pid int, work func(table func() ([]rootfs.Mounted, error)) error) error {
	return host.Apart(func() error {
		proc, err := os.Open("/proc") // of the host: the thread is unknown to that of the node
		if err != nil {
			return err
		}
		defer proc.Close()
		space, err := os.Open(fmt.Sprintf("/proc/%d/ns/mnt", pid))
		if err != nil {
			return err
		}
		defer space.Close()
		if err := unix.Unshare(unix.CLONE_FS); err != nil {
			return os.NewSyscallError("unshare", err)
		}
		if err := unix.Setns(int(space.Fd()), unix.CLONE_NEWNS); err != nil {
			return os.NewSyscallError("setns", err)
		}
		return work(func() ([]rootfs.Mounted, error) { return tableOf(proc) })
	})
}

func tableOf(proc *os.File) ([]rootfs.Mounted, error) {
	fd, err := unix.Openat(int(proc.Fd()), "thread-self/mountinfo", unix.O_RDONLY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("open mountinfo", err)
	}
	file := os.NewFile(uintptr(fd), "mountinfo")
	defer file.Close()
	return rootfs.ReadMounts(file)
}

// directory opens a directory of the node in whose namespace the thread is, and makes what is missing of it as the node's root would. No
// link is followed: LXC does not when the node starts, and what the node has put there shall not lead anybody elsewhere.
func directory(path string, first int) (*os.File, error) {
	root, err := tree.Open("/")
	if err != nil {
		return nil, err
	}
	defer root.Close()
	return root.MakeDown(path, first, first)
}

// command gives the name of a process and its id as the node knows it.
func command(pid int) string {
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil {
		return ""
	}
	inside := strconv.Itoa(pid)
	status, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	for line := range bytes.Lines(status) {
		if ids, ok := bytes.CutPrefix(line, []byte("NSpid:")); ok {
			if fields := strings.Fields(string(ids)); len(fields) > 0 {
				inside = fields[len(fields)-1]
			}
		}
	}
	return fmt.Sprintf("%s (process %s)", strings.TrimSpace(string(name)), inside)
}
