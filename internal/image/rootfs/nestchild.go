package rootfs

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"orrery/internal/host/fork"
)

// fork starts the child, as syscall.forkAndExecInChild does. It must not allocate, grow the stack
// or call into the runtime. The child has a copy of this process's memory.
//
//go:noinline
//go:norace
//go:nosplit
func (n *nest) fork() (pid int, e syscall.Errno) {
	fork.Before()
	child, _, e := syscall.RawSyscall6(unix.SYS_CLONE, uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if e != 0 || child != 0 {
		fork.After()
		return int(child), e
	}
	fork.AfterInChild()
	n.outer()
	for {
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, 0, 0, 0)
	}
}

// childEnd is the only descriptor of the child. It closes all others, which are copies of this
// process's descriptors.
const childEnd = 0

// outer creates the outer namespace, sets its limits once its ids are mapped, and creates the inner
// one. It ends when the parent closes its end of the connection or ends.
//
//go:noinline
//go:norace
//go:nosplit
func (n *nest) outer() {
	var o order
	var r report
	e := n.enter()
	if !r.send(stepEnter, e) || !o.receive() {
		return
	}
	if e = n.limit(); e != 0 {
		r.send(stepLimit, e)
		return
	}
	// The process that creates a namespace must have a group in the one around it.
	syscall.RawSyscall(unix.SYS_SETRESGID, 0, 0, 0)
	inner, _, e := syscall.RawSyscall6(unix.SYS_CLONE, unix.CLONE_NEWUSER|uintptr(unix.SIGCHLD), 0, 0, 0, 0, 0)
	if e == 0 && inner == 0 {
		hold()
	}
	r.pid = int64(inner)
	if r.send(stepInner, e) && o.receive() && r.send(stepMap, n.mapInner(&o)) {
		o.receive() // wait until the parent has opened the namespace
	}
	syscall.RawSyscall(unix.SYS_KILL, inner, uintptr(unix.SIGKILL), 0)
	syscall.RawSyscall6(unix.SYS_WAIT4, inner, 0, 0, 0, 0, 0)
}

// hold is what the process in the inner namespace runs. It keeps the namespace until it is killed.
//
//go:norace
//go:nosplit
func hold() {
	syscall.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0)
	var forever unix.Timespec
	for {
		forever.Sec = 1 << 30
		syscall.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&forever)), 0, 0)
	}
}

// enter enters the outer namespace. It closes all descriptors except its end of the connection.
//
//go:norace
//go:nosplit
func (n *nest) enter() (e syscall.Errno) {
	if _, _, e = syscall.RawSyscall(unix.SYS_DUP3, n.end, childEnd, 0); e != 0 {
		return e
	}
	if _, _, e = syscall.RawSyscall(unix.SYS_CLOSE_RANGE, childEnd+1, 1<<31-1, 0); e != 0 {
		return e
	}
	// The limit of this process would apply to all processes in the inner namespace. Without
	// CAP_SYS_RESOURCE, the limit cannot be removed.
	none := unix.Rlimit{Cur: unix.RLIM_INFINITY, Max: unix.RLIM_INFINITY}
	syscall.RawSyscall6(unix.SYS_PRLIMIT64, 0, unix.RLIMIT_NPROC, uintptr(unsafe.Pointer(&none)), 0, 0, 0)
	// In /proc, the files of a process whose memory is not readable, such as this one, belong to
	// the host's root.
	syscall.RawSyscall(unix.SYS_SETFSUID, 0, 0, 0)
	_, _, e = syscall.RawSyscall(unix.SYS_UNSHARE, unix.CLONE_NEWUSER, 0, 0)
	return e
}

// send sends a report and returns whether the step has succeeded.
//
//go:norace
//go:nosplit
func (r *report) send(step uint64, e syscall.Errno) bool {
	r.step, r.errno = step, uint64(e)
	syscall.RawSyscall(unix.SYS_WRITE, childEnd, uintptr(unsafe.Pointer(r)), unsafe.Sizeof(*r))
	return e == 0
}

// receive waits for an order. It returns false once the parent has closed its end.
//
//go:norace
//go:nosplit
func (o *order) receive() bool {
	for {
		n, _, e := syscall.RawSyscall(unix.SYS_READ, childEnd, uintptr(unsafe.Pointer(o)), unsafe.Sizeof(*o))
		if e != unix.EINTR {
			return e == 0 && n == unsafe.Sizeof(*o)
		}
	}
}

// limit sets the limits of the namespace. Older kernels do not have all kinds of namespaces.
//
//go:norace
//go:nosplit
func (n *nest) limit() syscall.Errno {
	for i := range n.limits {
		if e := n.limits[i].write(n.limits[i].path); e != 0 && e != unix.ENOENT {
			return e
		}
	}
	return 0
}

//go:norace
//go:nosplit
func (n *nest) mapInner(o *order) syscall.Errno {
	for i := range o {
		if e := n.ids.write(&o[i].path[0]); e != 0 {
			return e
		}
	}
	return 0
}

// write writes the value to a file.
//
//go:norace
//go:nosplit
func (s *setting) write(path *byte) syscall.Errno {
	dir := unix.AT_FDCWD
	fd, _, e := syscall.RawSyscall6(unix.SYS_OPENAT, uintptr(dir), uintptr(unsafe.Pointer(path)), unix.O_WRONLY, 0, 0, 0)
	if e != 0 {
		return e
	}
	_, _, e = syscall.RawSyscall(unix.SYS_WRITE, fd, uintptr(unsafe.Pointer(s.value)), s.size)
	syscall.RawSyscall(unix.SYS_CLOSE, fd, 0, 0)
	return e
}
