package rootfs

import (
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// IDs are the host ids of a node's own user and group ids 0 … Size-1. The zero IDs mean those of
// the host.
type IDs struct {
	First int
	Size  int
}

// Has reports whether an id of the host belongs to the node.
func (i IDs) Has(id uint32) bool {
	return i.Size == 0 || int(id) >= i.First && int(id) < i.First+i.Size
}

// Map returns the map of the node's user namespace in the format of /proc/PID/uid_map, with single
// spaces (user_namespaces(7)).
func (i IDs) Map() string {
	if i.Size == 0 {
		return "0 0 4294967295"
	}
	return fmt.Sprintf("0 %d %d", i.First, i.Size)
}

// Open returns a user namespace with the ids, for idmapped mounts. It returns nil for the zero IDs.
//
// In addition to the node's ids it maps the host's root to an id that no node has (Size). Overlayfs
// creates its work files as the user that has mounted it, and would fail if root had no id on disk.
func (i IDs) Open() (*os.File, error) {
	if i.Size == 0 {
		return nil, nil
	}
	ids := []syscall.SysProcIDMap{
		{ContainerID: 0, HostID: i.First, Size: i.Size},
		{ContainerID: i.Size, HostID: 0, Size: 1},
	}
	space, err := newHeldNamespace("/proc/self/exe", &syscall.SysProcAttr{UidMappings: ids, GidMappings: ids})
	if err != nil {
		return nil, fmt.Errorf("new user namespace: %w", err)
	}
	return space, nil
}

// newHeldNamespace returns a new user namespace. A process that stops before its first instruction (ptrace(2),
// PTRACE_TRACEME) holds the namespace until it has been opened. Program must be executable in the
// namespace.
func newHeldNamespace(program string, in *syscall.SysProcAttr) (*os.File, error) {
	in.Cloneflags, in.Ptrace, in.Pdeathsig = unix.CLONE_NEWUSER, true, syscall.SIGKILL
	p, err := os.StartProcess(program, []string{"orrery: ids"}, &os.ProcAttr{Dir: "/", Sys: in})
	if err != nil {
		return nil, err
	}
	defer func() {
		p.Kill() //nolint:errcheck // it has ended then
		p.Wait() //nolint:errcheck // only to reap it
	}()
	return os.Open(fmt.Sprintf("/proc/%d/ns/user", p.Pid))
}
