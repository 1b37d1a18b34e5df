package process

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

func started(t *testing.T, as *syscall.SysProcAttr, args ...string) *exec.Cmd {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	cmd.SysProcAttr = as
	if err := cmd.Start(); err != nil {
		if as != nil {
			t.Skip(err)
		}
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for begun := time.Now(); time.Since(begun) < 10*time.Second; {
		// A new process has its command line only after a moment.
		if text, err := os.ReadFile(Host.File(cmd.Process.Pid, "cmdline")); err != nil || len(text) > 0 {
			break
		}
	}
	return cmd
}

// TestTaskOf checks that a process counts only if it runs as the right user and in the same
// namespaces.
func TestTaskOf(t *testing.T) {
	cmd := started(t, nil, "sh", "-c", "while :; do sleep 1; done", "--", "--id", "7")
	pid, me := cmd.Process.Pid, os.Getuid()
	task, ok := Host.TaskOf(pid, me)
	if !ok || task.PID != pid || task.Parent != os.Getpid() || task.Program() != "sh" ||
		!slices.Equal(task.Args, cmd.Args) || task.Option("--id") != "" {
		t.Errorf("%+v, %t", task, ok)
	}
	if _, ok := Host.TaskOf(pid, me+1); ok {
		t.Error("it is somebody else's")
	}
	if _, ok := Host.Task(pid); ok != (me == 0) {
		t.Errorf("root's: %t", ok)
	}
	own := []syscall.SysProcIDMap{{ContainerID: me, HostID: me, Size: 1}}
	apart := started(t, &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER, UidMappings: own,
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}}, "sleep", "60")
	if task, ok := Host.TaskOf(apart.Process.Pid, me); ok {
		t.Errorf("in a namespace of its own: %+v", task)
	}
	inside := started(t, &syscall.SysProcAttr{Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWPID, UidMappings: own,
		GidMappings: []syscall.SysProcIDMap{{ContainerID: os.Getgid(), HostID: os.Getgid(), Size: 1}}}, "sleep", "60")
	for pid, want := range map[int]bool{inside.Process.Pid: true, apart.Process.Pid: false, pid: false, 1 << 22: false} {
		if got := Host.IsConfined(pid); got != want {
			t.Errorf("IsConfined(%d) is %t", pid, got)
		}
	}
}

// TestHeld checks that a held process gets signals, that its end is noticed, and that a wait ends
// with its context.
func TestHeld(t *testing.T) {
	cmd := started(t, nil, "sleep", "60")
	h, err := Open(cmd.Process.Pid)
	if err != nil {
		t.Fatal(err)
	}
	defer h.Close()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.RetryUntilEnded(ctx, func(int) error { return nil }); !errors.Is(err, context.Canceled) {
		t.Errorf("it has ended: %v", err)
	}
	failed := errors.New("failed")
	if err := h.RetryUntilEnded(t.Context(), func(int) error { return failed }); !errors.Is(err, failed) {
		t.Error(err)
	}
	if err := h.RetryUntilEnded(t.Context(), func(int) error { return h.Send(unix.SIGKILL) }); err != nil {
		t.Error(err)
	}
	_ = cmd.Wait()
	if err := h.Send(unix.SIGKILL); err != nil {
		t.Errorf("one that has ended: %v", err)
	}
}

func TestReadPID(t *testing.T) {
	file := filepath.Join(t.TempDir(), "pid")
	for text, want := range map[string]int{"17\n": 17, "": 0, "x": 0, strconv.Itoa(1 << 20): 1 << 20} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := ReadPID(file); got != want {
			t.Errorf("%q: %d", text, got)
		}
	}
	if got := ReadPID(file + "-none"); got != 0 {
		t.Error(got)
	}
}
