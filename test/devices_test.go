package test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"orrery/internal/engine/nodedir"
)

// TestDevices: a node has only the devices that it is given, however others got into its trees.
//
// Promise (Trees that others write): Device files in a tree open nothing in a node, and a node
// lacks the host's console. With image.TestImportRefusesDevices.
func TestDevices(t *testing.T) {
	t.Parallel()
	s := newSite(t, "it-devices", `
network = {}
[image.debian]
suite = "bookworm"
[node.plain]
id = 10
roles = ["holder"]
[node.strong]
id = 11
roles = ["holder"]
privileged = true
`, files{"roles/holder/role.toml": "[[volume]]\nname = \"data\"\npath = \"/srv/data\"\n"})
	s.do("up")
	s.do("stop")
	for _, id := range []int{10, 11} {
		for _, dir := range []string{
			filepath.Join(nodedir.Of(s.dirs, s.name, id).Path(), "private/upper/root"),
			filepath.Join(s.dirs.Volumes(s.name), "data", map[int]string{10: "plain", 11: "strong"}[id]),
		} {
			must(t, os.MkdirAll(dir, 0o700))
			for name, dev := range map[string]uint64{"null": unix.Mkdev(1, 3), "console": unix.Mkdev(5, 1),
				"mem": unix.Mkdev(1, 1)} {
				must(t, unix.Mknod(filepath.Join(dir, name), unix.S_IFCHR|0o666, int(dev)))
			}
			must(t, unix.Mknod(filepath.Join(dir, "disk"), unix.S_IFBLK|0o666, int(unix.Mkdev(7, 0))))
		}
	}
	s.do("start")
	open := func(node, device string) string { return s.sh(node, "( : < "+device+" ) 2>&1 || true") }
	for _, node := range []string{"plain", "strong"} {
		for _, dir := range []string{"/root", "/srv/data"} {
			for _, name := range []string{"null", "console", "mem", "disk"} {
				if said := open(node, dir+"/"+name); !strings.Contains(said, "Permission denied") &&
					!strings.Contains(said, "not permitted") {
					t.Errorf("%s opened %s/%s: %q", node, dir, name, said)
				}
			}
		}
		// Its own work is possible.
		s.sh(node, "echo x > /dev/null && [ $(head -c 3 /dev/zero | wc -c) = 3 ] && [ $(head -c 3 /dev/urandom | wc -c) = 3 ] && [ -c /dev/console ] && [ -c /dev/ptmx ]")
		if said := s.sh(node, "script -qec tty /dev/null"); !strings.HasPrefix(said, "/dev/pts/") {
			t.Errorf("a terminal in %s: %q", node, said)
		}
		if said := s.sh(node, "rm /root/null && rm -r /etc/apt && ls /root /etc/apt 2>&1 || true"); strings.Contains(said,
			"null") {
			t.Errorf("what %s removed: %q", node, said)
		}
		s.do("exec", node, "--", "systemctl", "is-system-running", "--wait")
	}
	// Root in an unprivileged node cannot make devices, and cannot change its mounts to get them.
	s.run("shell", "plain", "--", "mknod", "/root/made", "c", "1", "3").want(1, "not permitted")
	for _, at := range []string{"/", "/srv/data"} {
		if r := s.run("shell", "plain", "--", "mount", "-o", "remount,bind,dev", at); r.status == 0 {
			t.Errorf("%s can be remounted with devices", at)
		}
	}
	// Root in a privileged node can, but is restricted by the device rules.
	s.sh("strong", "mkdir -p /run/made && mount -t tmpfs -o dev made /run/made && mknod /run/made/mem c 1 1 && mknod /run/made/console c 5 1 && mknod /run/made/null c 1 3")
	for device, want := range map[string]string{"mem": "not permitted", "console": "not permitted", "null": ""} {
		if said := open("strong", "/run/made/"+device); !strings.Contains(said, want) || want == "" && said != "" {
			t.Errorf("strong opened %s: %q", device, said)
		}
	}
	for _, id := range []int{10, 11} {
		list, err := os.ReadFile(fmt.Sprintf("/sys/fs/cgroup/devices/orrery/%s/%d/devices.list", s.name, id))
		if os.IsNotExist(err) {
			continue // version 2: a program that cannot be read
		}
		if err != nil || strings.Contains(string(list), "a *:* rwm") || strings.Contains(string(list), "c 5:1") ||
			!strings.Contains(string(list), "c 1:3 rwm") {
			t.Errorf("devices of %d: %v\n%s", id, err, list)
		}
	}
}
