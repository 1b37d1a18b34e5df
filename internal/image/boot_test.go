package image

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"orrery/internal/host"
	"orrery/internal/host/cgroup"
	"orrery/internal/image/rootfs"
)

// A bootedNode is a node as an engine creates it, without network, on layers of the store.
type bootedNode struct{ name, dir string }

func boot(t *testing.T, lower ...string) *bootedNode {
	t.Helper()
	dir, err := os.MkdirTemp("/var/cache", "orrery-boot-")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o711); err != nil {
		t.Fatal(err)
	}
	n := &bootedNode{name: filepath.Base(dir), dir: dir}
	t.Cleanup(func() {
		exec.Command("lxc-stop", "-k", "-n", n.name, "-P", dir).Run()
		for _, suffix := range []string{"", ".monitor", ".pivot"} {
			g := cgroup.Named(n.name + suffix)
			if err := g.Kill(context.Background()); err != nil {
				t.Error(err)
			}
			cgroup.Remove(g)
		}
		if err := removeTree(dir); err != nil {
			t.Error(err)
		}
	})
	for _, d := range []string{"upper/etc/ssh", "work", "rootfs"} {
		os.MkdirAll(filepath.Join(dir, "private", d), 0o755)
	}
	os.MkdirAll(filepath.Join(dir, "rootfs"), 0o755)
	upper := filepath.Join(dir, "private/upper")
	os.WriteFile(upper+"/etc/machine-id", []byte("0123456789abcdef0123456789abcdef\n"), 0o444)
	os.WriteFile(upper+"/etc/hostname", []byte("boot\n"), 0o644)
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f",
		upper+"/etc/ssh/ssh_host_ed25519_key").CombinedOutput(); err != nil {
		t.Fatal(string(out), err)
	}
	config := fmt.Sprintf(`lxc.include = /usr/share/lxc/config/common.conf
lxc.include = /usr/share/lxc/config/userns.conf
lxc.uts.name = boot
lxc.rootfs.path = dir:%[1]s/rootfs
lxc.idmap = u 0 1900131072 65536
lxc.idmap = g 0 1900131072 65536
lxc.net.0.type = empty
lxc.net.0.flags = up
lxc.apparmor.profile = unconfined
lxc.cgroup.dir.container = %[2]s
lxc.cgroup.dir.monitor = %[2]s.monitor
lxc.cgroup.dir.monitor.pivot = %[2]s.pivot
`, dir, n.name)
	os.WriteFile(dir+"/config", []byte(config), 0o600)
	cmd := exec.Command("lxc-start", "-d", "-n", n.name, "-P", dir, "-f", dir+"/config", "-o", dir+"/log", "-l", "INFO")
	cmd.Env = []string{"PATH=" + host.Path}
	overlay := &rootfs.Overlay{Lower: lower, Upper: upper, Work: filepath.Join(dir, "private/work"),
		Target: dir + "/rootfs", IDs: rootfs.IDs{First: 1900131072, Size: 65536}}
	if err := overlay.StartCommand(cmd); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		text, _ := os.ReadFile(dir + "/log")
		t.Fatal(string(text), err)
	}
	return n
}

// run returns the output of a command in the node, and its error.
func (n *bootedNode) run(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	args = append([]string{"lxc-attach", "-n", n.name, "-P", n.dir, "--clear-env", "-v", "PATH=" + host.Path, "--"},
		args...)
	err := host.Exec(ctx, n.name, args, host.Command{Stdout: &out, Stderr: &out}, nil)
	return strings.TrimSpace(out.String()), err
}

// wait waits until systemd reports that it is running.
func (n *bootedNode) wait(t *testing.T) {
	t.Helper()
	var state string
	for begun := time.Now(); time.Since(begun) < time.Minute; time.Sleep(10 * time.Millisecond) {
		if state, _ = n.run(t.Context(), "systemctl", "is-system-running", "--wait"); state == "running" ||
			state == "degraded" {
			t.Logf("%s after %.2f s", state, time.Since(begun).Seconds())
			break
		}
	}
	if state != "running" {
		failed, _ := n.run(t.Context(), "systemctl", "--failed", "--no-legend")
		t.Errorf("systemd is %s: %s", state, failed)
	}
}

// TestBoot boots a node on the bare base image. It verifies fit: systemd is running, sshd answers
// at once, and next to nothing was written.
func TestBoot(t *testing.T) {
	s := realState(t)
	n := boot(t, s.Tree(realSuite(t, s, cmp.Or(os.Getenv("ORRERY_TEST_SUITE"), "bookworm")).Digest))
	n.wait(t)
	if out, err := n.run(t.Context(), "ss", "-ltn"); err != nil || !strings.Contains(out, ":22 ") {
		t.Errorf("sshd does not listen: %v\n%s", err, out)
	}
	if out, err := n.run(t.Context(), "sh", "-c", "ls /etc/ssh/*_key && ! test -e /etc/ssh/ssh_host_rsa_key"); err != nil {
		t.Errorf("keys were made at boot: %s", out)
	}
	if out, err := n.run(t.Context(), "journalctl", "-b", "-p", "warning", "-o", "cat", "--no-pager"); err != nil ||
		strings.Contains(out, "Failed to start") {
		t.Errorf("%v\n%s", err, out)
	}
	blame, _ := n.run(t.Context(), "systemd-analyze", "blame", "--no-pager")
	cpu, _ := os.ReadFile("/sys/fs/cgroup/cpuacct/" + n.name + "/cpuacct.usage")
	t.Logf("%s ns of CPU\n%s", strings.TrimSpace(string(cpu)), blame)
	var written int64
	filepath.WalkDir(n.dir+"/private/upper", func(path string, _ os.DirEntry, err error) error {
		var st syscall.Stat_t
		if err == nil && syscall.Lstat(path, &st) == nil {
			written += st.Blocks * 512
		}
		return nil
	})
	t.Logf("%d KiB written", written>>10)
	if written > 1<<20 {
		t.Errorf("a node writes %d KiB at its first boot", written>>10)
	}
}
