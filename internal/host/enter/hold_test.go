package enter

import (
	"bytes"
	"errors"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"orrery/internal/host"
	"orrery/internal/host/cgroup"
	"orrery/internal/host/process"
	"orrery/test/need"
)

// all is the map of a user namespace with the host's ids.
const all = "0 0 4294967295"

// contained starts the first process of new namespaces by unshare(1), which is its monitor.
func contained(t *testing.T, spaces ...string) (pid, monitor int) {
	t.Helper()
	cmd := exec.Command("unshare", append(spaces, "--pid", "--fork", "--kill-child", "sleep", "600")...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
		_ = cmd.Wait()
	})
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); time.Sleep(time.Millisecond) {
		for _, child := range process.Host.Children(cmd.Process.Pid) {
			same, err := sameFile(process.Host.File(child, "exe"), process.Host.File(cmd.Process.Pid, "exe"))
			if err == nil && !same { // it has become sleep
				return child, cmd.Process.Pid
			}
		}
	}
	t.Fatal("unshare has started nothing")
	return 0, 0
}

// TestHold checks that only a process that root started as the first of a container, with its
// namespaces and ids, is accepted as its init.
func TestHold(t *testing.T) {
	need.Integration(t)
	whole := []string{"--mount", "--net", "--uts", "--ipc"}
	pid, monitor := contained(t, whole...)
	i, err := OpenInit(pid, monitor, all)
	if err != nil {
		t.Fatal(err)
	}
	i.Close()
	other, _ := contained(t, whole...)
	shared, itsMonitor := contained(t, "--mount", "--uts", "--ipc")
	for name, c := range map[string]struct {
		pid, monitor int
		ids          string
	}{
		"of another monitor":               {other, monitor, all},
		"with other ids":                   {pid, monitor, "0 1900065536 65536"},
		"the monitor itself":               {monitor, 1, all},
		"in the network of the host":       {shared, itsMonitor, all},
		"one that is not there":            {1 << 22, monitor, all},
		"a process of the host, such as 1": {1, 0, all},
	} {
		if i, err := OpenInit(c.pid, c.monitor, c.ids); !errors.Is(err, ErrNotReady) {
			t.Errorf("%s: %v", name, err)
			if err == nil {
				i.Close()
			}
		}
	}
}

// TestRun checks that a command runs in the container with exactly the given environment, and that
// its status is returned. A command that cannot be run has the status of a shell.
func TestRun(t *testing.T) {
	need.Integration(t)
	t.Setenv("OF_THE_CALLER", "secret")
	pid, monitor := contained(t, "--mount", "--net", "--uts", "--ipc", "--mount-proc")
	c := Container{
		Name: "box", Hold: func() (*Init, error) { return OpenInit(pid, monitor, all) },
		Group: cgroup.Named("orrery-no-such-group"), Env: []string{"PATH=" + host.Path, "A=default"},
	}
	var out bytes.Buffer
	script := "env | sort; echo $$; readlink /proc/1/ns/net /proc/self/ns/net | uniq | wc -l"
	err := c.Run(t.Context(), host.Command{Args: []string{"sh", "-c", script}, Env: []string{"A=b"}, Stdout: &out})
	if err != nil || !strings.Contains(out.String(), "A=b\n") || strings.Contains(out.String(), "default") ||
		strings.Contains(out.String(), "OF_THE_CALLER") || !strings.HasSuffix(out.String(), "\n1\n") {
		t.Errorf("%v\n%s", err, out.String())
	}
	for program, want := range map[string]struct {
		status int
		says   string
	}{"no-such-program": {127, "no-such-program: command not found"},
		"/etc/passwd": {126, "/etc/passwd: permission denied"}} {
		var e *host.RunError
		if err := c.Run(t.Context(), host.Command{Args: []string{program}}); !errors.As(err, &e) ||
			e.Status != want.status || !strings.Contains(e.Output, want.says) {
			t.Errorf("%s: %v", program, err)
		}
	}
}
