package image

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"orrery/internal/host"
)

// A bootedNode is a node as an engine makes it, without network, on layers of the store.
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
		time.Sleep(100 * time.Millisecond)
		found, _ := filepath.Glob("/sys/fs/cgroup/*/orrery-boot-*")
		killCgroups(found)
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
	if out, err := exec.Command("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", upper+"/etc/ssh/ssh_host_ed25519_key").CombinedOutput(); err != nil {
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
	cmd.Env = []string{"PATH=/usr/sbin:/sbin"}
	overlay := &Overlay{Lower: lower, Upper: upper, Work: filepath.Join(dir, "private/work"), Target: dir + "/rootfs", IDs: IDs{1900131072, 65536}}
	if err := overlay.Spawn(cmd); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		text, _ := os.ReadFile(dir + "/log")
		t.Fatal(string(text), err)
	}
	return n
}

// run gives what a command in the node prints, and how it ended.
func (n *bootedNode) run(ctx context.Context, args ...string) (string, error) {
	var out bytes.Buffer
	args = append([]string{"lxc-attach", "-n", n.name, "-P", n.dir, "--clear-env", "-v", "PATH=" + host.Path, "--"}, args...)
	err := host.Exec(ctx, n.name, args, host.Command{Stdout: &out, Stderr: &out}, nil)
	return strings.TrimSpace(out.String()), err
}

// TestBoot boots a node on the bare base image: what fit does is right when systemd is content, at once, and writes next to nothing.
func TestBoot(t *testing.T) {
	s := testState(t)
	base := testBase(t, s)
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	begun := time.Now()
	n := boot(t, s.Tree(base.Digest))
	var state string
	for ctx.Err() == nil {
		if state, _ = n.run(ctx, "systemctl", "is-system-running", "--wait"); state == "running" || state == "degraded" {
			break
		}
		time.Sleep(5 * time.Millisecond)
	}
	took := time.Since(begun)
	cpu, _ := os.ReadFile("/sys/fs/cgroup/cpuacct/" + n.name + "/cpuacct.usage")
	t.Logf("CPU %s", cpu)
	t.Logf("%s after %.2fs", state, took.Seconds())
	for _, args := range [][]string{{"systemctl", "--failed", "--no-legend"}, {"systemd-analyze"}, {"systemd-analyze", "blame"},
		{"systemctl", "list-units", "--no-legend", "--no-pager", "--plain"}, {"ss", "-ltn"}, {"locale"}, {"ps", "axf"}, {"journalctl", "-b", "--no-pager"}} {
		out, err := n.run(ctx, args...)
		t.Logf("%s: %v\n%s", args[0], err, out)
	}
	if state != "running" {
		t.Errorf("systemd is %s", state)
	}
	out, _ := exec.Command("du", "-a", "--block-size=1", n.dir+"/private/upper").CombinedOutput()
	t.Logf("written:\n%s", out)
}
