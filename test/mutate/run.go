package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// memoryLimit is the maximum memory in bytes of one process of a mutated test. An unmutated one
// needs a quarter of it.
const memoryLimit = "2147483648"

// build builds the test program of a package.
func (l *lab) build(s suite, options ...string) (string, error) {
	program := filepath.Join(l.scratch, strings.ReplaceAll(s.path, "/", "-")+".test")
	args := append([]string{"test", "-c", "-p=1", "-ldflags=-s -w", "-o", program}, options...)
	if out, err := exec.Command("go", append(args, s.path)...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("%s: %w: %s", s.path, err, out)
	}
	return program, nil
}

// run runs a test program with limits on time and memory, and returns its output. A mutation may do
// anything, so root runs it as an unprivileged user, in a process namespace whose processes all end
// with the first.
func run(s suite, limit time.Duration, program string, args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	line := []string{"prlimit", "--data=" + memoryLimit, program}
	temporary, err := os.MkdirTemp(filepath.Dir(program), "run-")
	if err != nil {
		return "", err
	}
	defer os.RemoveAll(temporary) //nolint:errcheck // a scratch directory
	if os.Geteuid() == 0 {
		line = append([]string{"unshare", "--pid", "--fork", "--kill-child", "--mount-proc",
			"setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all"}, line...)
		if err := os.Chown(temporary, 65534, 65534); err != nil {
			return "", err
		}
	}
	cmd := exec.CommandContext(ctx, line[0], append(line[1:], args...)...)
	cmd.Dir = s.dir
	cmd.Env = append(os.Environ(), "ORRERY_INTEGRATION=", "TMPDIR="+temporary, "HOME="+temporary)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	cmd.WaitDelay = time.Second
	var out bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &out
	err = cmd.Run()
	if ctx.Err() != nil {
		return "", os.ErrDeadlineExceeded
	}
	return out.String(), err
}

// explain adds a command's error output to its error.
func explain(err error) error {
	if failure := (*exec.ExitError)(nil); errors.As(err, &failure) {
		return fmt.Errorf("%w: %s", err, failure.Stderr)
	}
	return err
}
