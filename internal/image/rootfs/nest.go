package rootfs

import (
	"fmt"
	"os"
	"strconv"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// namespaceLimits are the maximum numbers of namespaces of each kind in a container, including nested
// ones. The kernel does not charge all memory of a namespace to the container's memory limit: a
// network namespace costs the host about 160 KB.
var namespaceLimits = map[string]int{
	"net": 256, "user": 1000, "mnt": 1000, "pid": 1000, "ipc": 1000, "uts": 1000, "cgroup": 1000, "time": 1000,
}

// newNestedNamespace returns a user namespace that maps all ids to the same ids of the namespace around it. Its
// owner is the calling thread's effective user. The outer namespace, which no process is in, has
// the limits on namespaces. Root in the inner one may set its own limits (sysctls
// user.max_*_namespaces). But the kernel also counts a namespace in all those around it
// (namespaces(7)), and no privilege reaches outwards.
//
// Only a process in the outer namespace can map ids of the inner one, and a Go program cannot enter
// a user namespace. So nested forks, and the child does it with raw system calls. The caller must
// have locked its thread (host.OnLockedThread).
func (i IDs) newNestedNamespace() (*os.File, error) {
	n, ours, err := i.plan()
	if err != nil {
		return nil, err
	}
	defer ours.Close() //nolint:errcheck // it may be closed
	syscall.ForkLock.Lock()
	child, errno := n.fork()
	syscall.ForkLock.Unlock()
	closed := unix.Close(int(n.end))
	if errno != 0 {
		return nil, os.NewSyscallError("clone", errno)
	}
	defer func() {
		ours.Close() //nolint:errcheck // the child ends by it
		_, _ = unix.Wait4(child, nil, 0, nil)
	}()
	if closed != nil {
		return nil, os.NewSyscallError("close", closed)
	}
	if _, err := receive(ours); err != nil { // the child is in the outer namespace
		return nil, err
	}
	if err := i.mapIn(child); err != nil {
		return nil, err
	}
	if err := send(ours, order{}); err != nil {
		return nil, err
	}
	inner, err := receive(ours)
	if err != nil {
		return nil, err
	}
	if err := send(ours, mapping(inner)); err != nil {
		return nil, err
	}
	if _, err := receive(ours); err != nil {
		return nil, err
	}
	return os.Open(fmt.Sprintf("/proc/%d/ns/user", inner))
}

// An order tells the child to continue. For the last step, it has the files in which the child must
// map the ids of the inner namespace, as zero-terminated paths.
type order [2]struct{ path [32]byte }

func mapping(pid int) (o order) {
	for i, file := range []string{"uid_map", "gid_map"} {
		copy(o[i].path[:], fmt.Sprintf("/proc/%d/%s", pid, file))
	}
	return o
}

func send(to *os.File, o order) error {
	_, err := to.Write((*[unsafe.Sizeof(o)]byte)(unsafe.Pointer(&o))[:])
	return err
}

// mapIn maps the ids in the user namespace of a process.
func (i IDs) mapIn(pid int) error {
	text := fmt.Sprintf("0 %d %d", i.First, i.Size)
	for _, file := range []string{"uid_map", "gid_map"} {
		if err := os.WriteFile(fmt.Sprintf("/proc/%d/%s", pid, file), []byte(text), 0); err != nil {
			return err
		}
	}
	return nil
}

// nest has everything the child needs. The child cannot allocate memory, so the parent creates all
// of it before.
type nest struct {
	end    uintptr // the child's end of a connection (SOCK_SEQPACKET of unix(7), which keeps messages whole)
	limits []setting
	ids    setting // the map of the inner namespace; the order has the paths
}

// A setting is a value for a file of the kernel.
type setting struct {
	path, value *byte
	size        uintptr
}

// plan returns what the child needs, and the parent's end of the connection.
func (i IDs) plan() (n *nest, ours *os.File, err error) {
	n = &nest{}
	for kind, most := range namespaceLimits {
		s, err := settingOf("/proc/sys/user/max_"+kind+"_namespaces", strconv.Itoa(most))
		if err != nil {
			return nil, nil, err
		}
		n.limits = append(n.limits, s)
	}
	if n.ids, err = settingOf("", fmt.Sprintf("0 0 %d", i.Size)); err != nil {
		return nil, nil, err
	}
	ends, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_SEQPACKET|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, nil, os.NewSyscallError("socketpair", err)
	}
	n.end = uintptr(ends[1])
	return n, os.NewFile(uintptr(ends[0]), "connection to a child"), nil
}

func settingOf(path, value string) (s setting, err error) {
	if s.path, err = unix.BytePtrFromString(path); err != nil {
		return s, err
	}
	s.value, err = unix.BytePtrFromString(value)
	s.size = uintptr(len(value))
	return s, err
}

// A report is a message of the child: a step it has done, with a process id, or one that has
// failed.
type report struct {
	step  uint64
	pid   int64
	errno uint64
}

// The steps of the child. It has its own child in the inner namespace.
const (
	stepEnter = iota
	stepLimit
	stepInner
	stepMap
)

var steps = []string{
	stepEnter: "create a user namespace", stepLimit: "limit what is in it",
	stepInner: "create a user namespace inside it", stepMap: "map its ids",
}

// receive waits for a report of the child and returns the process id in it.
func receive(from *os.File) (pid int, err error) {
	var said [unsafe.Sizeof(report{})]byte
	if _, err := from.Read(said[:]); err != nil {
		return 0, fmt.Errorf("the process that creates a user namespace: %w", err)
	}
	r := *(*report)(unsafe.Pointer(&said))
	if r.errno != 0 {
		return 0, fmt.Errorf("%s: %w", steps[r.step], syscall.Errno(r.errno))
	}
	return int(r.pid), nil
}
