package agent

import (
	"bufio"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/transport/rpc"
	"orrery/test/need"
)

// alone runs a test again as root of a fake machine with its own processes and mounts. It reports
// whether this is that second run. Volumes are file systems in memory.
func alone(t *testing.T) bool {
	t.Helper()
	if !need.Alone(t, "--mount", "--propagation", "private", "--pid", "--fork", "--mount-proc", "--kill-child") {
		return false
	}
	volumeFSType, dropCachesFile = "tmpfs", filepath.Join(t.TempDir(), "caches")
	must(t, os.WriteFile(dropCachesFile, nil, 0o600))
	return true
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// volumeAt mounts a volume.
func volumeAt(t *testing.T, path string) {
	t.Helper()
	must(t, os.MkdirAll(path, 0o755))
	mounted(t, "volume", path, "tmpfs", 0)
	must(t, os.WriteFile(path+"/rows", nil, 0o600))
}

// mounted mounts a file system until the test has ended.
func mounted(t *testing.T, what, path, kind string, how uintptr) {
	t.Helper()
	must(t, unix.Mount(what, path, kind, how, ""))
	t.Cleanup(func() { _ = unix.Unmount(path, unix.MNT_DETACH) })
}

func hasRows(path string) bool { _, err := os.Lstat(path + "/rows"); return err == nil }

// during runs a command that prints a line when it has started, until end is called.
func during(t *testing.T, args ...string) (pid int, end func()) {
	t.Helper()
	cmd := exec.Command(args[0], args[1:]...)
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	if _, err := bufio.NewReader(out).ReadString('\n'); err != nil {
		t.Fatal(err)
	}
	end = func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }
	t.Cleanup(end)
	return cmd.Process.Pid, end
}

// TestForget checks that volumes are unmounted from all namespaces, the innermost first, even if
// mounted twice at one place. Other volumes and other file systems stay.
func TestForget(t *testing.T) {
	if !alone(t) {
		return
	}
	top := t.TempDir()
	outer, inner, other, plain := top+"/da ta", top+"/da ta/in", top+"/da ta 2", top+"/plain"
	for _, path := range []string{outer, outer, inner, other} {
		volumeAt(t, path)
	}
	must(t, os.Mkdir(plain, 0o755))
	mounted(t, other, plain, "", unix.MS_BIND)
	pid, _ := during(t, "unshare", "--mount", "--propagation", "private", "sh", "-c", "echo begun; exec sleep 1000")
	must(t, here.Unmount(within(t), []string{inner, outer, plain + "/none"}))
	if hasRows(outer) || hasRows(inner) || !hasRows(other) || !hasRows(plain) {
		t.Error("what was to go stays, or what was to stay goes")
	}
	table, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/mountinfo")
	must(t, err)
	if strings.Contains(string(table), `/da\040ta `) || strings.Contains(string(table), `/da\040ta/in `) ||
		!strings.Contains(string(table), `/da\040ta\0402 `) {
		t.Errorf("a service sees %s", table)
	}
	if text, err := os.ReadFile(dropCachesFile); err != nil || string(text) != "2" {
		t.Errorf("names are remembered: %q, %v", text, err)
	}
}

// TestForgetInUse checks that the users of a volume are named, even in another namespace, and that
// the volume stays. It also checks a volume that is covered by a mount, or whose user is unknown.
func TestForgetInUse(t *testing.T) {
	if !alone(t) {
		return
	}
	data := t.TempDir() + "/data"
	volumeAt(t, data)
	wants := func(who string) {
		t.Helper()
		var used *rpc.InUse
		if err := here.Unmount(within(t), []string{data}); !errors.As(err, &used) || !strings.Contains(used.By, who) ||
			who == "" && used.By != "" {
			t.Errorf("%v, want %q", err, who)
		}
		if !hasRows(data) {
			t.Error("it goes")
		}
		if text, err := os.ReadFile(dropCachesFile); err != nil || len(text) > 0 {
			t.Errorf("all is forgotten: %q, %v", text, err)
		}
	}
	for _, script := range []string{"exec 9>" + data + "/held; echo begun; sleep 1000 & wait",
		"cd " + data + "; echo begun; sleep 1000 & wait"} {
		pid, end := during(t, "sh", "-c", script)
		wants("sh (process " + strconv.Itoa(pid) + ") with " + data)
		end()
		for len(usersOf(data)) > 0 { // the shell's child
			killUsers(t, data)
		}
	}
	over := t.TempDir()
	mounted(t, over, data, "", unix.MS_BIND)
	var used *rpc.InUse
	if err := here.Unmount(within(t), []string{data}); !errors.As(err, &used) || used.By != "a mount over it" {
		t.Error(err)
	}
	must(t, unix.Unmount(data, 0))
	inside := data + "/inside"
	must(t, os.Mkdir(inside, 0o755))
	mounted(t, over, inside, "", unix.MS_BIND) // no process has it open
	wants("")
	must(t, unix.Unmount(inside, 0))
	must(t, here.Unmount(within(t), []string{data}))
	if hasRows(data) {
		t.Error("it stays")
	}
}

// killUsers kills the processes that have a file at a place open.
func killUsers(t *testing.T, path string) {
	t.Helper()
	for _, pid := range processes() {
		if usedFile(pid, path) != "" {
			must(t, unix.Kill(pid, unix.SIGKILL))
		}
	}
	time.Sleep(time.Millisecond)
}

// TestForgetGivenUp checks that Unmount ends with its context.
func TestForgetGivenUp(t *testing.T) {
	if !alone(t) {
		return
	}
	data := t.TempDir() + "/data"
	volumeAt(t, data)
	must(t, os.Mkdir(data+"/inside", 0o755))
	mounted(t, t.TempDir(), data+"/inside", "", unix.MS_BIND)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := here.Unmount(ctx, []string{data}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// TestFind checks that a volume that appears during the wait is found, in spite of cached names. A
// volume that does not appear is an error.
func TestFind(t *testing.T) {
	if !alone(t) {
		return
	}
	top := t.TempDir()
	done := make(chan error, 1)
	go func() { done <- here.RefreshMounts(within(t), []string{top + "/a", top + "/a/b"}) }()
	time.Sleep(20 * time.Millisecond)
	volumeAt(t, top+"/a")
	time.Sleep(20 * time.Millisecond)
	volumeAt(t, top+"/a/b")
	must(t, ended(t, done))
	if text, err := os.ReadFile(dropCachesFile); err != nil || string(text) != "2" {
		t.Errorf("names are remembered: %q, %v", text, err)
	}
	maxMountAttempts = 2
	if err := here.RefreshMounts(within(t), []string{top + "/never"}); err == nil ||
		!strings.Contains(err.Error(), "the volume is not visible at "+top+"/never") {
		t.Error(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := here.RefreshMounts(ctx, []string{top + "/never"}); !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}
