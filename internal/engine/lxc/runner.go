package lxc

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/problem"
)

// Runner runs commands in a running node by lxc-attach(1), with the node's namespaces, control group, capabilities and seccomp filter.
func (e *Engine) Runner(ref engine.Ref) host.Runner { return runner{e.container(ref)} }

type runner struct{ c container }

// Run runs a command in the node.
func (r runner) Run(ctx context.Context, c host.Command) error {
	if !r.c.running() {
		return notRunning(r.c.ref)
	}
	attach, err := host.Seal("lxc-attach")
	if err != nil {
		return err
	}
	args := []string{"lxc-attach", "--name", r.c.name, "--lxcpath", r.c.dir, "--clear-env", "--quiet",
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
		if !c.TTY { // which ends with us
			// By lxc-attach, Sweep finds the command if we are killed; without it, the command would go on unseen.
			cmd.SysProcAttr.Pdeathsig = 0
			cmd.Env = append(slices.DeleteFunc(cmd.Env, func(pair string) bool { return strings.HasPrefix(pair, caller) }),
				caller+strconv.Itoa(os.Getpid()))
		}
	})
}

// Put writes files in the node.
func (r runner) Put(ctx context.Context, files ...host.File) error {
	return host.PutByCommand(ctx, r, files...)
}

// Dial connects from inside the node's network.
func (r runner) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	pid := r.c.init()
	if pid == 0 {
		return nil, notRunning(r.c.ref)
	}
	type result struct {
		conn net.Conn
		err  error
	}
	done := make(chan result, 1)
	host.OnOwnThread(func() {
		space, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
		if err != nil {
			done <- result{nil, err}
			return
		}
		defer space.Close()
		if err := unix.Setns(int(space.Fd()), unix.CLONE_NEWNET); err != nil {
			done <- result{nil, err}
			return
		}
		// A numeric address keeps the dialling on this thread.
		conn, err := new(net.Dialer).DialContext(ctx, network, address)
		done <- result{conn, err}
	})
	r2 := <-done
	return r2.conn, r2.err
}

func notRunning(ref engine.Ref) error {
	return problem.New(problem.Failed, "node %s does not run", ref.Name).At(ref.Site).Try("orrery up %s", ref.Name)
}
