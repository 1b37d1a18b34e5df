package confine

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/image/rootfs"
	"orrery/test/need"
)

// TestListening: QEMU receives sockets open that it would open itself, and the files that it has
// received already. Its other options are unchanged.
func TestListening(t *testing.T) {
	next, opened := 10, []string{}
	listen := func(path string) (int, error) {
		next++
		opened = append(opened, path)
		return next, nil
	}
	got, handed, err := RewriteSockets([]string{
		"-xen-domid", "3", "-chardev", "socket,id=libxl-cmd,fd=7,server=on,wait=off", "-chardev",
		"socket,id=libxenstat-cmd,path=/var/run/xen/qmp-libxenstat-3,server=on,wait=off",
		"-chardev", "socket,id=libxl-channel0,path=/run/a.sock,server,nowait", "-name", "socket,path=/x", "-incoming",
		"fd:9", "-m", "192",
	}, listen)
	want := []string{
		"-xen-domid", "3", "-chardev", "socket,id=libxl-cmd,fd=7,server=on,wait=off", "-chardev",
		"socket,id=libxenstat-cmd,fd=11,server=on,wait=off",
		"-chardev", "socket,id=libxl-channel0,fd=12,server,nowait", "-name", "socket,path=/x", "-incoming", "fd:9", "-m",
		"192",
	}
	if err != nil || !slices.Equal(got, want) || !slices.Equal(handed, []int{7, 11, 12, 9}) ||
		!slices.Equal(opened, []string{"/var/run/xen/qmp-libxenstat-3", "/run/a.sock"}) {
		t.Errorf("%q\n%v %v %v", got, handed, opened, err)
	}
	bad := errors.New("no room")
	if _, _, err := RewriteSockets([]string{"-chardev", "socket,path=/x"},
		func(string) (int, error) { return 0, bad }); !errors.Is(err, bad) {
		t.Errorf("%v", err)
	}
}

// TestOpening: QEMU receives the files to open by number and fdset. Links are not followed.
func TestOpening(t *testing.T) {
	dir := t.TempDir()
	file, link := filepath.Join(dir, "disk"), filepath.Join(dir, "link")
	must(t, os.WriteFile(file, []byte("image"), 0o600))
	must(t, os.Symlink(file, link))
	given := []string{"-m", "192"}
	args, err := Backend{Files: []FDSetFile{{Path: file, Set: 10}, {Path: file, Set: 11, Writes: true}}}.openFiles(given)
	must(t, err)
	var fd, writes int
	if _, err := fmt.Sscanf(args[3]+" "+args[5], "fd=%d,set=10 fd=%d,set=11", &fd, &writes); err != nil ||
		args[2] != "-add-fd" || args[4] != "-add-fd" || len(given) != 2 {
		t.Fatalf("%q, %v", args, err)
	}
	for fd, want := range map[int]int{fd: unix.O_RDONLY, writes: unix.O_RDWR} {
		if got, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0); err != nil || got&unix.O_ACCMODE != want {
			t.Errorf("it is open as %o, %v, not %o", got, err, want)
		}
	}
	defer unix.Close(writes) //nolint:errcheck // nothing was written
	f := os.NewFile(uintptr(fd), file)
	defer f.Close()
	if text, err := io.ReadAll(f); err != nil || string(text) != "image" {
		t.Errorf("%q, %v", text, err)
	}
	if _, handed, err := RewriteSockets(args, nil); err != nil || !slices.Equal(handed, []int{fd, writes}) {
		t.Errorf("%v, %v", handed, err)
	}
	if _, err := (Backend{Files: []FDSetFile{{Path: link, Set: 10}}}).openFiles(nil); err == nil {
		t.Error("a link is followed")
	}
}

// asBackend is the variable with which TestBackend runs this test program again, to become a
// backend.
const asBackend = "ORRERY_TEST_BACKEND"

// TestBackend: what Xen's toolstack starts is root of the node's ids and unprivileged on the host.
// It cannot leave its sandbox, and sees there the shared root and libraries.
//
// Promise (Virtual machines): The QEMU of a guest of Xen is nobody on the host, and sees of its
// files only what it shares with the guest. With engine/confine.TestListening.
func TestBackend(t *testing.T) {
	if text := os.Getenv(asBackend); text != "" {
		var b Backend
		must(t, json.Unmarshal([]byte(text), &b))
		t.Fatal(b.Exec([]string{"-c", os.Getenv("ORRERY_TEST_SCRIPT"), "sh", "-chardev",
			"socket,id=x,path=" + os.Getenv("ORRERY_TEST_SOCKET")}))
	}
	need.Integration(t)
	dir, err := os.MkdirTemp("/var/tmp", "orrery-backend-")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(dir)) })
	must(t, os.Chmod(dir, 0o755))
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"lower", "private/upper", "private/work", "root", "cell"} {
		must(t, os.MkdirAll(at(name), 0o755))
	}
	must(t, os.WriteFile(at("lower/old"), []byte("layer"), 0o600))
	must(t, os.WriteFile(at("strange"), nil, 0o644))
	o := &rootfs.Overlay{
		Lower: []string{at("lower")}, Upper: at("private/upper"), Work: at("private/work"), Target: at("root"),
		IDs: rootfs.IDs{First: first, Size: 65536}, Namespace: at("ids"),
	}
	shell, err := filepath.EvalSymlinks("/bin/sh")
	must(t, err)
	sees := QEMUPaths(shell)
	for _, tool := range []string{"cat", "chown", "chmod", "mknod", "chroot", "true", "mount", "ls", "touch", "sleep"} {
		path, err := exec.LookPath(tool)
		must(t, err)
		path, err = filepath.EvalSymlinks(path)
		must(t, err)
		sees = append(sees, path)
	}
	b := Backend{
		Sandbox: Sandbox{At: at("cell"), User: first, Sees: sees, Devices: []string{"zero"}},
		Program: shell, Space: at("ids"), Shares: []string{at("root")},
		Files: []FDSetFile{{Path: at("strange"), Set: 20, Writes: true}},
	}
	text, err := json.Marshal(b)
	must(t, err)
	script := fmt.Sprintf(`cd %[1]s/root; cat old >new; chown 5:6 new; chmod 640 new
		(mknod dev c 1 3; chroot . true; mount -t tmpfs x /proc; cat %[1]s/strange) 2>/dev/null && echo broken >fault
		ls / >seen; ls /dev >devices; ls -s /dev/fdset >sets; ls /proc >processes; exec 4<new; chmod 600 /proc/self/fd/4; echo "$2" >options; touch ready; exec sleep 300`,
		dir)
	cmd := exec.Command("/proc/self/exe", "-test.run=^TestBackend$")
	cmd.Env = append(os.Environ(), asBackend+"="+string(text), "ORRERY_TEST_SCRIPT="+script,
		"ORRERY_TEST_SOCKET="+at("x.sock"))
	said, err := os.Create(at("said"))
	must(t, err)
	defer said.Close()
	cmd.Stdout, cmd.Stderr = said, said
	must(t, o.StartCommand(cmd))
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	upper := func(name string) string {
		text, _ := os.ReadFile(at("private/upper/" + name))
		return strings.TrimSpace(string(text))
	}
	for begun := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		if _, err := os.Stat(at("private/upper/ready")); err == nil {
			break
		}
		if time.Since(begun) > time.Minute {
			words, _ := os.ReadFile(at("said"))
			t.Fatalf("it is not ready: %s", words)
		}
	}
	pid := cmd.Process.Pid // the started process becomes the program
	id := fmt.Sprintf("%[1]d %[1]d %[1]d %[1]d", first)
	const few = "000000008000001f" // chown, dac_override, dac_read_search, fowner, fsetid, setfcap
	wantStatus(t, pid, map[string]string{"Uid": id, "Gid": id, "NoNewPrivs": "1", "CapBnd": few, "CapPrm": few,
		"CapEff": few, "CapInh": "0000000000000000"})
	apart(t, pid, "user", "mnt", "net", "ipc", "uts")
	if soft, hard := limit(t, pid, "Max core file size"); soft != "0" || hard != "0" {
		t.Errorf("its core file may have %s", hard)
	}
	if upper("new") != "layer" || upper("fault") != "" {
		t.Errorf("it has written %q; it broke out: %q", upper("new"), upper("fault"))
	}
	var st unix.Stat_t
	if must(t, unix.Stat(at("private/upper/new"), &st)); st.Uid != 5 || st.Gid != 6 || st.Mode&0o777 != 0o600 {
		t.Errorf("a file of its guest is %d:%d %o on disk", st.Uid, st.Gid, st.Mode)
	}
	if got := strings.Fields(upper("devices")); !slices.Equal(got, []string{"fdset", "null", "urandom", "zero"}) {
		t.Errorf("its devices are %v", got)
	}
	if got := strings.Fields(upper("sets")); !slices.Equal(got, []string{"total", "0", "0", "20"}) {
		t.Errorf("of what it finds open there is %v", got)
	}
	for _, name := range strings.Fields(upper("seen")) {
		if !slices.Contains([]string{"bin", "dev", "etc", "lib", "lib64", "proc", "usr", "var"}, name) {
			t.Errorf("it sees /%s", name)
		}
	}
	if got := strings.Fields(upper("processes")); len(got) != 4 || !slices.Contains(got, fmt.Sprint(pid)) ||
		!slices.Contains(got, "self") || !slices.Contains(got, "thread-self") {
		t.Errorf("beside itself and ls it sees the processes %v", got)
	}
	if !strings.HasPrefix(upper("options"), "socket,id=x,fd=") {
		t.Errorf("it is told %q", upper("options"))
	}
	if info, err := os.Stat(at("x.sock")); err != nil || info.Mode() != os.ModeSocket|0o600 {
		t.Errorf("its socket: %v, %v", info, err)
	}
}
