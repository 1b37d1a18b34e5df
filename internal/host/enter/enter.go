// Package enter runs commands in containers of this host.
//
// A Container is a host.Runner that uses the pidfd of the container's init. lxc-attach(1) asks
// LXC's command socket which process and which namespaces to enter. That socket has an abstract
// name, to which any process on the host can bind while the container is stopped. The process that
// answers decides where the command runs. A pidfd needs no such answer: Hold verifies the process
// by properties that only root of the host can have given to it.
//
// A thread of its own first takes on all that the command inherits: session keyring, scheduling
// class, seccomp filter, AppArmor profile, namespaces. It then forks a child, and ends afterwards.
// The child enters control groups and the user namespace, which a thread of a multithreaded process
// cannot, and becomes the command (fork.go). Between the user namespace and execve(2) there are
// only a few system calls, in which the child cannot be traced: commit_creds of the kernel makes it
// not dumpable.
package enter

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/host/cgroup"
	"orrery/internal/host/seccomp"
)

// A Container is a container in which commands can be run.
type Container struct {
	Name  string                // of the node, or another name for messages
	Hold  func() (*Init, error) // holds its first process
	Root  int                   // id on this host of the container's root, or 0 if it has no user namespace of its own
	Group cgroup.Group          // contains all processes of the container
	Calls seccomp.Policy        // the system calls that its programs may make
	Env   []string              // of every command, as KEY=value
}

// Run runs a command as root of the container, or as another user by runuser(1) of the container.
// If the program does not exist, the status is 127, as in a shell. If it cannot be run, the status
// is 126.
func (c Container) Run(ctx context.Context, cmd host.Command) error {
	if cmd.User != "" && cmd.User != "root" {
		cmd.Args = append([]string{"runuser", "-u", cmd.User, "--"}, cmd.Args...)
	}
	if cmd.TTY {
		cmd.Pseudo = c.openTerminal
	}
	return host.RunOn(ctx, c.Name, cmd.Args, cmd, func(streams host.Streams) (host.Process, error) {
		return c.start(ctx, cmd, streams)
	})
}

// start starts a command on the given streams.
func (c Container) start(ctx context.Context, cmd host.Command, streams host.Streams) (host.Process, error) {
	holding := c.openInitAsync()
	var command *Process
	err := host.OnLockedThread(func() (err error) {
		command, err = c.enter(ctx, holding, cmd, streams)
		return err
	})
	var noProgram execError
	if errors.As(err, &noProgram) {
		return reportNotRun(cmd.Args[0], noProgram.errno, streams.Err), nil
	}
	return command, err
}

// openInitAsync starts to hold the container's first process. The returned function waits for the result.
func (c Container) openInitAsync() func() (*Init, error) {
	type held struct {
		init *Init
		err  error
	}
	done := make(chan held, 1)
	go func() {
		init, err := c.Hold()
		done <- held{init, err}
	}()
	return func() (*Init, error) {
		h := <-done
		return h.init, h.err
	}
}

// enter starts a command from the calling thread, which the caller then lets end. It prepares what
// it can while hold still runs.
func (c Container) enter(ctx context.Context, holding func() (*Init, error), cmd host.Command,
	streams host.Streams) (*Process, error) {
	left := host.DetachFromCaller()
	in := c.openEntryFiles()
	defer in.close()
	init, err := holding()
	if err != nil {
		return nil, err
	}
	defer init.Close()
	if err := errors.Join(left, in.err); err != nil {
		return nil, err
	}
	b, release, err := c.prepare(init, in, cmd, streams)
	if err != nil {
		return nil, err
	}
	defer release()
	if err := c.setThreadAttributes(init); err != nil {
		return nil, err
	}
	return b.start(ctx)
}

// An exitStatus is the error of a command that did not succeed.
type exitStatus int

// ExitCode returns the exit status.
func (e exitStatus) ExitCode() int { return int(e) }

func (e exitStatus) Error() string { return fmt.Sprintf("exit status %d", int(e)) }

// notRun is a command that could not be run in the container. It is its exit status, as in a shell.
type notRun exitStatus

func (n notRun) Wait() error { return exitStatus(n) }
func (n notRun) Kill() error { return nil }

// reportNotRun prints to the command's standard error, as a shell does, why its program cannot be run.
func reportNotRun(program string, err error, on *os.File) notRun {
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		fmt.Fprintf(on, "%s: command not found\n", program)
		return 127
	}
	fmt.Fprintf(on, "%s: %v\n", program, err)
	return 126
}

// prepare prepares all that the child needs. The files that it opens stay open until release is
// called.
func (c Container) prepare(init *Init, in entryFiles, cmd host.Command, streams host.Streams) (b *childSpec,
	release func(),
	err error) {
	env := dedupEnv(slices.Concat(c.Env, cmd.Env))
	if !cmd.TTY { // a command on a terminal ends with the terminal
		env = append([]string{CallerEnv(os.Getpid())}, env...)
	}
	b, release, err = newChildSpec(cmd.Args, env, searchPath(cmd.Args[0], env), streams)
	if err != nil {
		return nil, nil, err
	}
	b.init, b.user = uintptr(init.fd), c.Root != 0
	b.setEntryFiles(in)
	if b.dropped, err = init.droppedCapabilities(); err != nil {
		release()
		return nil, nil, err
	}
	return b, release, nil
}

// entryFiles are the files by which a process enters the control groups of a container
// (cgroup.Group.Doors). They are open until close is called.
type entryFiles struct {
	tasks []*os.File
	leaf  *os.File
	err   error
}

func (c Container) openEntryFiles() (d entryFiles) {
	d.tasks, d.leaf, d.err = c.Group.OpenEntryFiles()
	return d
}

func (d entryFiles) close() {
	closeAll(d.tasks)
	if d.leaf != nil {
		d.leaf.Close()
	}
}

// dedupEnv removes duplicate variables. Of two with one name, the last one counts.
func dedupEnv(pairs []string) []string {
	var all []string
	seen := map[string]bool{}
	for _, pair := range slices.Backward(pairs) {
		name, _, _ := strings.Cut(pair, "=")
		if !seen[name] {
			seen[name] = true
			all = append(all, pair)
		}
	}
	slices.Reverse(all)
	return all
}

// searchPath returns the paths where a program may be.
func searchPath(name string, env []string) []string {
	if strings.Contains(name, "/") {
		return []string{name}
	}
	dirs := host.Path
	for _, pair := range env {
		if value, ok := strings.CutPrefix(pair, "PATH="); ok {
			dirs = value
		}
	}
	var all []string
	for dir := range strings.SplitSeq(dirs, ":") {
		all = append(all, path.Join("/", dir, name))
	}
	return all
}

// setThreadAttributes sets the attributes of the calling thread that the child inherits.
func (c Container) setThreadAttributes(init *Init) error {
	root, err := unix.Open(init.file("root"), unix.O_PATH|unix.O_CLOEXEC, 0)
	if err != nil {
		return &os.PathError{Op: "open", Path: init.file("root"), Err: err}
	}
	defer unix.Close(root)
	if profile := init.profile(); profile != "" {
		if err := os.WriteFile("/proc/thread-self/attr/apparmor/exec", []byte("exec "+profile), 0); err != nil {
			return err
		}
	}
	if init.Ended() { // the values read may be those of another process
		return ErrNotReady
	}
	if err := c.Calls.Install(); err != nil {
		return err
	}
	if err := unix.Unshare(unix.CLONE_FS); err != nil {
		return os.NewSyscallError("unshare", err)
	}
	const namespaceFlags = unix.CLONE_NEWNS | unix.CLONE_NEWPID | unix.CLONE_NEWNET | unix.CLONE_NEWUTS | unix.CLONE_NEWIPC
	if err := unix.Setns(init.fd, namespaceFlags); err != nil {
		return os.NewSyscallError("setns", err)
	}
	if err := unix.Fchdir(root); err != nil {
		return os.NewSyscallError("fchdir", err)
	}
	return os.NewSyscallError("chroot", unix.Chroot("."))
}
