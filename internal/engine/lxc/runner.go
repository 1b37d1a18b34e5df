package lxc

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/host/process"
	"orrery/internal/tree"
)

// Runner runs commands in a running node by lxc-attach(1), with the node's namespaces, control group, capabilities and seccomp filter.
func (e *Engine) Runner(ref engine.Ref) host.Runner { return runner{e.container(ref), e} }

type runner struct {
	c container
	e *Engine
}

var _ host.Viewer = runner{}

// View opens the root of the node.
func (r runner) View() (*tree.Root, func(id uint32) bool, error) {
	root, ids, err := r.e.view(r.c.ref)
	return root, ids.Has, err
}

// Run runs a command in the node.
func (r runner) Run(ctx context.Context, c host.Command) error {
	if !r.c.running() {
		return engine.NotRunning(r.c.ref)
	}
	attach, err := host.Seal("lxc-attach")
	if err != nil {
		return err
	}
	args := []string{"lxc-attach", "--name", r.c.name, "--lxcpath", r.c.Path(), "--clear-env", "--quiet",
		"--set-var", "PATH=" + host.Path, "--set-var", "LANG=C.UTF-8", "--set-var", "HOME=/root"}
	if term := os.Getenv("TERM"); c.TTY && term != "" {
		args = append(args, "--set-var", "TERM="+term)
	}
	for _, pair := range c.Env {
		args = append(args, "--set-var", pair)
	}
	args = append(args, "--")
	if c.User != "" && c.User != "root" {
		args = append(args, "runuser", "-u", c.User, "--")
	}
	// lxc-attach begins where it was called from, if the node has such a directory.
	return host.Exec(ctx, r.c.ref.Name, append(args, c.Args...), c, func(cmd *exec.Cmd) {
		cmd.Dir, cmd.Path, cmd.Err = "/", attach, nil
		cmd.Cancel = func() error { return end(cmd.Process) }
		if !c.TTY { // which ends with us
			// By lxc-attach, Sweep finds the command if we are killed; without it, the command would go on unseen.
			cmd.SysProcAttr.Pdeathsig = 0
			cmd.Env = append(slices.DeleteFunc(cmd.Env, func(pair string) bool { return strings.HasPrefix(pair, caller) }),
				caller+strconv.Itoa(os.Getpid()))
		}
	})
}

// end kills the command of an lxc-attach, which buries it and ends. Were that killed as well, the dead process would stay in the node until the host's init buries it, which not every init does
// at once, and systemd waits ten seconds for it when the node shuts down. What cannot end, as in a node that stands still, is left to that.
func end(attach *os.Process) error {
	for try := range 50 {
		if attach.Signal(syscall.Signal(0)) != nil {
			if try == 0 {
				return os.ErrProcessDone
			}
			return nil
		}
		for _, pid := range groupOf(process.Host, attach.Pid) {
			_ = unix.Kill(pid, unix.SIGKILL)
		}
		time.Sleep(10 * time.Millisecond)
	}
	return unix.Kill(-attach.Pid, unix.SIGKILL)
}

// Put writes files in the node.
func (r runner) Put(ctx context.Context, files ...host.File) error {
	return host.PutByCommand(ctx, r, files...)
}
