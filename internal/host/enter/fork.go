package enter

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/host/fork"
)

// cloneArgs is struct clone_args of clone3(2).
type cloneArgs struct {
	flags, pidfd, childTID, parentTID, exitSignal, stack, stackSize, tls, setTID, setTIDSize, cgroup uint64
}

// A failure is the child's report of the step that failed, and why.
type failure struct {
	step  uint64
	errno uint64
}

// steps are the names of the child's steps that can fail, by their number in a failure.
var steps = []string{
	stepSession: "setsid", stepStreams: "dup3", stepClose: "close_range", stepGroup: "enter the control groups",
	stepLimits:   "prlimit",
	stepTerminal: "acquire the terminal", stepCgroupSpace: "enter the cgroup namespace",
	stepUserSpace: "enter the user namespace", stepIDs: "become root of the container",
	stepCapabilities: "drop capabilities", stepDeath: "prctl", stepExec: "execve",
}

const (
	stepSession = iota
	stepStreams
	stepClose
	stepGroup
	stepLimits
	stepTerminal
	stepCgroupSpace
	stepUserSpace
	stepIDs
	stepCapabilities
	stepDeath
	stepExec
)

// zero is written to the file "tasks" of a control group of version 1 to move the writing thread
// there.
var zero = [1]byte{'0'}

// forkChild starts the child, like syscall.forkAndExecInChild. Between fork and execve, the code
// must not allocate, grow the stack or call into the runtime. The child is not a thread of this
// process, because such a thread cannot change its user namespace. It has a copy of this process's
// memory and does not share it. With shared memory, a child that the container freezes would also
// stop this process.
//
//go:noinline
//go:norace
//go:nosplit
func forkChild(b *childSpec) (pid int, err syscall.Errno) {
	args := cloneArgs{exitSignal: uint64(unix.SIGCHLD)}
	if b.leaf != noFD {
		args.flags, args.cgroup = unix.CLONE_INTO_CGROUP, uint64(b.leaf)
	}
	fork.Before()
	child, _, e := syscall.RawSyscall(unix.SYS_CLONE3, uintptr(unsafe.Pointer(&args)), unsafe.Sizeof(args), 0)
	if e != 0 || child != 0 {
		fork.After()
		return int(child), e
	}
	fork.AfterInChild()
	var failed failure
	failed.step, e = inChild(b)
	failed.errno = uint64(e)
	syscall.RawSyscall(unix.SYS_WRITE, b.report, uintptr(unsafe.Pointer(&failed)), unsafe.Sizeof(failed))
	for {
		syscall.RawSyscall(unix.SYS_EXIT_GROUP, 127, 0, 0)
	}
}

// inChild becomes the command. It returns only on failure, with the step that failed and the error.
//
//go:noinline
//go:norace
//go:nosplit
func inChild(b *childSpec) (step uint64, e syscall.Errno) {
	if _, _, e = syscall.RawSyscall(unix.SYS_SETSID, 0, 0, 0); e != 0 {
		return stepSession, e
	}
	for i := range uintptr(3) {
		if b.streams[i] == i {
			continue
		}
		if _, _, e = syscall.RawSyscall(unix.SYS_DUP3, b.streams[i], i, 0); e != 0 {
			return stepStreams, e
		}
	}
	// Close copies of this process's descriptors. Otherwise the child would keep locks, mounts and
	// executables busy for as long as the container freezes it before execve.
	next := uintptr(3)
	for i := range b.kept {
		if next < b.kept[i] {
			if _, _, e = syscall.RawSyscall(unix.SYS_CLOSE_RANGE, next, b.kept[i]-1, 0); e != 0 {
				return stepClose, e
			}
		}
		next = b.kept[i] + 1
	}
	if _, _, e = syscall.RawSyscall(unix.SYS_CLOSE_RANGE, next, 1<<31-1, 0); e != 0 {
		return stepClose, e
	}
	if _, _, e = syscall.RawSyscall(unix.SYS_CLOSE_RANGE, 3, 1<<31-1, unix.CLOSE_RANGE_CLOEXEC); e != 0 {
		return stepClose, e
	}
	for i := range b.tasks {
		if _, _, e = syscall.RawSyscall(unix.SYS_WRITE, b.tasks[i], uintptr(unsafe.Pointer(&zero)), 1); e != 0 {
			return stepGroup, e
		}
	}
	for i := range uintptr(host.LimitCount) {
		if _, _, e = syscall.RawSyscall6(unix.SYS_PRLIMIT64, 0, i, uintptr(unsafe.Pointer(&b.limits[i])), 0, 0, 0); e != 0 {
			return stepLimits, e
		}
	}
	syscall.RawSyscall(unix.SYS_UMASK, 0o022, 0, 0)
	if b.terminal {
		if _, _, e = syscall.RawSyscall(unix.SYS_IOCTL, 0, unix.TIOCSCTTY, 0); e != 0 {
			return stepTerminal, e
		}
	}
	if b.init != noFD {
		if step, e = enterContainer(b); e != 0 {
			return step, e
		}
	}
	if b.dies { // after enterContainer: a change of ids clears the death signal
		if _, _, e = syscall.RawSyscall(unix.SYS_PRCTL, unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0); e != 0 {
			return stepDeath, e
		}
	}
	for i := range b.paths {
		if b.paths[i] == nil {
			break
		}
		_, _, e = syscall.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(b.paths[i])),
			uintptr(unsafe.Pointer(&b.argv[0])), uintptr(unsafe.Pointer(&b.envv[0])))
		if e != unix.ENOENT && e != unix.ENOTDIR {
			break
		}
	}
	return stepExec, e
}

// enterContainer enters the rest of a container, and becomes its root.
//
//go:noinline
//go:norace
//go:nosplit
func enterContainer(b *childSpec) (step uint64, e syscall.Errno) {
	// The thread must not do this before the fork: a child can begin only in a group of version 2
	// that the thread's namespace shows.
	if _, _, e = syscall.RawSyscall(unix.SYS_SETNS, b.init, unix.CLONE_NEWCGROUP, 0); e != 0 {
		return stepCgroupSpace, e
	}
	if b.user {
		if _, _, e = syscall.RawSyscall(unix.SYS_SETNS, b.init, unix.CLONE_NEWUSER, 0); e != 0 {
			return stepUserSpace, e
		}
	}
	if _, _, e = syscall.RawSyscall(unix.SYS_SETGROUPS, 0, 0, 0); e != 0 {
		return stepIDs, e
	}
	if _, _, e = syscall.RawSyscall(unix.SYS_SETRESGID, 0, 0, 0); e != 0 {
		return stepIDs, e
	}
	if _, _, e = syscall.RawSyscall(unix.SYS_SETRESUID, 0, 0, 0); e != 0 {
		return stepIDs, e
	}
	for i := range b.dropped {
		if _, _, e = syscall.RawSyscall(unix.SYS_PRCTL, unix.PR_CAPBSET_DROP, b.dropped[i], 0); e != 0 {
			return stepCapabilities, e
		}
	}
	return 0, 0
}
