package confine

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/host/cgroup"
	"orrery/internal/image/rootfs"
	"orrery/test/need"
)

const first = 1_900_065_536 // start of a range of user ids

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// listening returns a listening socket to be passed to a command.
func listening(t *testing.T, path string) *os.File {
	t.Helper()
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	must(t, err)
	l.SetUnlinkOnClose(false)
	f, err := l.File()
	must(t, err)
	must(t, l.Close())
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// ended makes sure that a started command ends with the test, and logs its output.
func ended(t *testing.T, cmd *exec.Cmd, in cgroup.Group) {
	t.Helper()
	log := filepath.Join(t.TempDir(), "log")
	f, err := os.Create(log)
	must(t, err)
	cmd.Stdout, cmd.Stderr = f, f
	t.Cleanup(func() {
		if cmd.Process != nil {
			_ = cmd.Process.Kill()
			_ = cmd.Wait()
		}
		_ = in.Kill(context.Background())
		cgroup.Remove(in)
		cgroup.RemoveEmpty("it-confine")
		if text, _ := os.ReadFile(log); t.Failed() {
			t.Logf("it said: %s", text)
		}
	})
}

// status returns the lines of a process's /proc status.
func status(t *testing.T, pid int) map[string]string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	must(t, err)
	all := map[string]string{}
	for line := range strings.Lines(string(text)) {
		key, value, _ := strings.Cut(line, ":")
		all[key] = strings.Join(strings.Fields(value), " ")
	}
	return all
}

func wantStatus(t *testing.T, pid int, want map[string]string) {
	t.Helper()
	got := status(t, pid)
	for key, value := range want {
		if got[key] != value {
			t.Errorf("%s is %q, not %q", key, got[key], value)
		}
	}
}

// apart checks that a process has other namespaces than this one.
func apart(t *testing.T, pid int, spaces ...string) {
	t.Helper()
	for _, space := range spaces {
		ours, err := os.Readlink("/proc/self/ns/" + space)
		must(t, err)
		if its, err := os.Readlink(fmt.Sprintf("/proc/%d/ns/%s", pid, space)); err != nil || its == ours {
			t.Errorf("its %s namespace is ours: %v", space, err)
		}
	}
}

// limit returns the soft and hard limit of a process (proc_pid_limits(5)).
func limit(t *testing.T, pid int, name string) (soft, hard string) {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/limits", pid))
	must(t, err)
	for line := range strings.Lines(string(text)) {
		if rest, ok := strings.CutPrefix(line, name); ok {
			return strings.Fields(rest)[0], strings.Fields(rest)[1]
		}
	}
	t.Fatalf("no limit %s", name)
	return "", ""
}

func wantNoCore(t *testing.T, pid int) {
	t.Helper()
	if _, core := limit(t, pid, "Max core file size"); core != "0" {
		t.Errorf("it may leave a core of %s bytes", core)
	}
}

// TestQEMUInACell: QEMU runs with a user id of its own and without privileges. It sees only what
// the sandbox shows, and has open only what it received.
//
// Promise (Virtual machines): QEMU has no privilege, sees only files that it is shown, and has open
// only what it is given.
func TestQEMUInACell(t *testing.T) {
	need.Integration(t)
	qemu := need.Program(t, "qemu-system-x86_64")
	dir, in := t.TempDir(), cgroup.OfNode("it-confine", 1)
	at, kernel := filepath.Join(dir, "cell"), filepath.Join(dir, "vmlinux")
	must(t, os.Mkdir(at, 0o700))
	must(t, os.WriteFile(kernel, []byte("kernel"), 0o644))
	secret, err := unix.Open(kernel, unix.O_RDONLY, 0) // as a shell may leave a file open
	must(t, err)
	defer unix.Close(secret)

	cmd := exec.Command(qemu, "-nodefaults", "-no-user-config", "-display", "none", "-M", "q35,memory-backend=mem",
		"-accel", "tcg", "-m", "64", "-S",
		"-object", "memory-backend-memfd,id=mem,size=64M,share=on", "-chardev", "socket,id=qmp,fd=3,server=on,wait=off",
		"-mon", "chardev=qmp,mode=control",
		"-sandbox", QEMUSandboxOption)
	cmd.ExtraFiles = []*os.File{listening(t, filepath.Join(dir, "qmp"))}
	ended(t, cmd, in)
	c := Sandbox{At: at, User: first + 65535, Locked: 1 << 20,
		Sees: append(QEMUPaths("/usr/bin/qemu-system-x86_64"), qemu, kernel, "/not/there")}
	must(t, host.OnLockedThread(func() error { return c.Start(cmd, in) }))

	conn, err := net.Dial("unix", filepath.Join(dir, "qmp"))
	must(t, err)
	defer conn.Close()
	must(t, conn.SetDeadline(time.Now().Add(time.Minute)))
	if greeting, err := bufio.NewReader(conn).ReadString('\n'); err != nil || !strings.Contains(greeting, "QMP") {
		t.Fatalf("%q, %v", greeting, err)
	}
	pid := cmd.Process.Pid
	id := fmt.Sprint(c.User)
	four := strings.Join([]string{id, id, id, id}, " ")
	const none = "0000000000000000"
	wantStatus(t, pid, map[string]string{"Uid": four, "Gid": four, "Groups": "", "CapPrm": none, "CapEff": none,
		"CapAmb": none, "NoNewPrivs": "1", "Seccomp": "2"})
	apart(t, pid, "mnt", "net", "ipc", "uts", "pid")
	wantNoCore(t, pid)
	if _, locked := limit(t, pid, "Max locked memory"); locked != "1048576" {
		t.Errorf("it may lock %s bytes", locked)
	}
	if !slices.Contains(in.Processes(), pid) {
		t.Error("it is not in its control group")
	}

	must(t, AllowDevices(in))
	for device, want := range map[string]bool{"null": true, "zero": false, "full": false} {
		look := exec.Command("head", "-c1", "/dev/"+device)
		must(t, host.OnLockedThread(func() error { return in.Start(look) })) // as a QEMU that has left its sandbox
		if opened := look.Wait() == nil; opened != want {
			t.Errorf("%s is opened: %t", device, opened)
		}
	}
	root := fmt.Sprintf("/proc/%d/root", pid)
	if _, err := os.Stat(root + kernel); err != nil {
		t.Errorf("what it is shown it does not see: %v", err)
	}
	for _, path := range []string{"/proc", "/sys", "/var", "/root", "/home", "/run", "/etc/passwd", "/etc/shadow",
		"/usr/bin/env", "/dev/kvm", filepath.Join(dir, "qmp"), "/not"} {
		if _, err := os.Lstat(root + path); err == nil {
			t.Errorf("it sees %s", path)
		}
	}
	for _, path := range []string{"/new", "/dev/new", "/usr/lib/new", kernel} {
		if f, err := os.OpenFile(root+path, os.O_CREATE|os.O_WRONLY, 0o600); err == nil { // even root must fail
			f.Close()
			t.Errorf("%s is written", path)
		}
	}
	if mounts, err := rootfs.MountsOf("self"); err != nil ||
		slices.ContainsFunc(mounts, func(m rootfs.MountInfo) bool { return strings.HasPrefix(m.At, at) }) {
		t.Errorf("the host sees it: %v", err)
	}
	open, err := os.ReadDir(fmt.Sprintf("/proc/%d/fd", pid))
	must(t, err)
	for _, e := range open {
		if to, _ := os.Readlink(fmt.Sprintf("/proc/%d/fd/%s", pid, e.Name())); strings.HasPrefix(to, dir) {
			t.Errorf("it has %s open", to)
		}
	}
}

// TestShare: virtiofsd runs as root of a node's ids, unprivileged on the host. The files that it
// creates belong to root on disk.
//
// Promise (Virtual machines): virtiofsd is nobody on the host, and sees only the root of its guest.
func TestShare(t *testing.T) {
	need.Integration(t)
	dir, in := t.TempDir(), cgroup.OfNode("it-confine", 2)
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, d := range []string{"lower/etc", "private/upper", "private/work", "rootfs"} {
		must(t, os.MkdirAll(at(d), 0o755))
	}
	for d := dir; d != "/" && d != os.TempDir(); d = filepath.Dir(d) { // as nodedir lets the node's root pass through
		must(t, os.Chmod(d, 0o711))
	}
	s := Share{Overlay: &rootfs.Overlay{Lower: []string{at("lower")}, Upper: at("private/upper"),
		Work: at("private/work"), Target: at("rootfs"),
		IDs: rootfs.IDs{First: first, Size: 65536}}}

	t.Run("what it makes", func(t *testing.T) {
		cmd := exec.Command("/bin/sh", "-ec", "cd "+at("rootfs")+
			"; mkdir etc/new; chown 7:8 etc/new; id -u; ! cat /etc/shadow 2>/dev/null; ! mknod etc/zero c 1 5 2>/dev/null")
		ended(t, cmd, in)
		must(t, s.Start(cmd, in))
		must(t, cmd.Wait())
		var st unix.Stat_t
		must(t, unix.Stat(at("private/upper/etc/new"), &st))
		if st.Uid != 7 || st.Gid != 8 {
			t.Errorf("on disk it is %d:%d's", st.Uid, st.Gid)
		}
	})

	t.Run("virtiofsd", func(t *testing.T) {
		program := "/usr/lib/qemu/virtiofsd"
		if _, err := os.Stat(program); err != nil {
			t.Skip(err)
		}
		cmd := exec.Command(program, "--fd=3", "-o", "source="+at("rootfs")+",cache=auto,sandbox=namespace,xattr,posix_acl",
			"--thread-pool-size=0", "--rlimit-nofile=0")
		cmd.ExtraFiles = []*os.File{listening(t, at("fs"))}
		ended(t, cmd, in)
		must(t, s.Start(cmd, in))
		conn, err := net.Dial("unix", at("fs"))
		must(t, err)
		defer conn.Close()
		worker := 0 // it enters its sandbox in a process of its own
		for begun := time.Now(); worker == 0; time.Sleep(20 * time.Millisecond) {
			for _, pid := range in.Processes() {
				if pid != cmd.Process.Pid && status(t, pid)["Seccomp"] == "2" {
					worker = pid
				}
			}
			if time.Since(begun) > time.Minute {
				t.Fatal("it does not come up")
			}
		}
		id := fmt.Sprint(first)
		four := strings.Join([]string{id, id, id, id}, " ")
		wantStatus(t, worker, map[string]string{"Uid": four, "Gid": four, "NoNewPrivs": "1"})
		apart(t, worker, "user", "mnt", "net", "pid")
		wantNoCore(t, worker)
		if soft, hard := limit(t, worker, "Max open files"); soft != hard {
			t.Errorf("it may open %s files of %s", soft, hard)
		}
		if names, err := os.ReadDir(fmt.Sprintf("/proc/%d/root", worker)); err != nil || len(names) != 1 ||
			names[0].Name() != "etc" {
			t.Errorf("it sees %v: %v", names, err)
		}
	})
}

// TestQEMU: a QEMU outside the distribution sees its own firmware and libraries, and the
// distribution's.
func TestQEMU(t *testing.T) {
	for program, want := range map[string]bool{"/usr/bin/qemu-system-x86_64": false,
		"/opt/qemu/bin/qemu-system-x86_64": true} {
		sees := QEMUPaths(program)
		if slices.Contains(sees, "/opt/qemu/share/qemu") != want || !slices.Contains(sees, "/usr/share/seabios") {
			t.Errorf("%s: %q", program, sees)
		}
	}
}

// TestCellsBesideForks: a sandbox becomes read-only even while other threads of this process start
// programs. Between fork and exec, a program has a copy of every open file of this process. The
// kernel makes no mount read-only while a file on it is open for writing.
func TestCellsBesideForks(t *testing.T) {
	need.Integration(t)
	dir := t.TempDir()
	shown := []string{"/lib64"}
	for i := range 40 {
		path := filepath.Join(dir, fmt.Sprint(i))
		must(t, os.WriteFile(path, nil, 0o644))
		shown = append(shown, path)
	}
	at := filepath.Join(dir, "cell")
	must(t, os.Mkdir(at, 0o700))
	ctx, stop := context.WithCancel(context.Background())
	var others sync.WaitGroup
	defer func() { stop(); others.Wait() }()
	for range 8 {
		others.Go(func() {
			for ctx.Err() == nil {
				_ = exec.Command("/bin/true").Run()
			}
		})
	}
	c := Sandbox{At: at, User: first + 65535, Sees: shown}
	for i := range 150 {
		if err := host.OnLockedThread(c.enter); err != nil {
			t.Fatalf("cell %d: %v", i, err)
		}
	}
}
