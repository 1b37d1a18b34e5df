package enter

import (
	"context"
	"os"
	"runtime"
	"slices"
	"syscall"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
)

// A childSpec contains all that the child needs between fork and execve, in memory allocated before the
// fork.
type childSpec struct {
	streams  [3]uintptr // descriptors above 2, or equal to their index
	terminal bool       // whether streams[0] is a terminal, which becomes that of the child's session
	leaf     uintptr    // descriptor of the control group of version 2 in which the child begins, or none
	tasks    []uintptr  // descriptors of the files by which it enters groups of version 1
	init     uintptr    // pidfd of a container's init, or none to stay on the host
	user     bool       // whether the container has a user namespace of its own
	dies     bool       // whether the child is killed when the thread ends that started it
	limits   [host.LimitCount]unix.Rlimit
	dropped  []uintptr // capabilities to drop
	report   uintptr   // descriptor to which a failure is written
	kept     []uintptr // descriptors above 2 that the child needs until execve, which closes them, in ascending order
	paths    []*byte   // where the program may be, in the order of the search, with nil at the end
	argv     []*byte
	envv     []*byte
}

const noFD = ^uintptr(0)

// newChildSpec returns a birth for a program that stays on the host. The files that it opens stay open
// until release is called.
func newChildSpec(args, env, paths []string, streams host.Streams) (b *childSpec, release func(), err error) {
	b = &childSpec{init: noFD, leaf: noFD, terminal: streams.Terminal, limits: host.Limits()}
	var open []*os.File
	release = func() { closeAll(open) }
	for i, stream := range []*os.File{streams.In, streams.Out, streams.Err} {
		if stream, err = dupAboveStdio(stream, i); err != nil {
			release()
			return nil, nil, err
		}
		if stream != nil {
			open = append(open, stream)
			b.streams[i] = stream.Fd()
		} else {
			b.streams[i] = uintptr(i)
		}
	}
	b.envv, err = syscall.SlicePtrFromStrings(env)
	if err == nil {
		b.argv, err = syscall.SlicePtrFromStrings(args)
	}
	if err == nil {
		b.paths, err = syscall.SlicePtrFromStrings(paths)
	}
	if err != nil {
		release()
		return nil, nil, err
	}
	return b, release, nil
}

// dupAboveStdio returns a copy of a stream at a descriptor above 2, so that no other stream overwrites it.
// It returns nil if the stream already has the desired number. A nil stream becomes /dev/null.
func dupAboveStdio(stream *os.File, number int) (*os.File, error) {
	if stream == nil {
		return os.OpenFile(os.DevNull, os.O_RDWR, 0)
	}
	fd := stream.Fd() // Fd also makes it blocking, as programs expect
	if fd == uintptr(number) {
		return nil, nil
	}
	fresh, err := unix.FcntlInt(fd, unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(fresh), stream.Name()), nil
}

// setEntryFiles makes the child enter control groups.
func (b *childSpec) setEntryFiles(d entryFiles) {
	for _, f := range d.tasks {
		b.tasks = append(b.tasks, f.Fd())
	}
	if d.leaf != nil {
		b.leaf = d.leaf.Fd()
	}
}

// start starts the child from the calling thread, and returns when it has become its program.
func (b *childSpec) start(ctx context.Context) (*Process, error) {
	outcome, report, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer outcome.Close()
	b.report = report.Fd()
	b.collectFDs()
	child, errno := forkChild(b)
	runtime.KeepAlive(b)
	report.Close()
	if errno != 0 {
		return nil, os.NewSyscallError("clone3", errno)
	}
	process, err := os.FindProcess(child)
	if err != nil {
		return nil, err
	}
	u := &Process{ctx: ctx, process: process, ended: make(chan error, 1)}
	return u, u.waitStarted(outcome)
}

// collectFDs determines the descriptors that the child must keep.
func (b *childSpec) collectFDs() {
	b.kept = append(slices.Clone(b.tasks), b.report)
	if b.init != noFD {
		b.kept = append(b.kept, b.init)
	}
	slices.Sort(b.kept)
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
