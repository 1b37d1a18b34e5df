package volume

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/test/need"
)

func TestMirrors(t *testing.T) {
	dirs := host.Dirs{State: "/s", Run: "/r"}
	s := &site.Site{
		Name: "karoo", Nodes: []site.Node{{Name: "db", ID: 1, Roles: []string{"db"}},
			{Name: "web", ID: 2, Roles: []string{"db"}}},
		Roles: []site.Role{{Name: "db", Volumes: []site.VolumeUse{{Name: "rows", Path: "/a"}, {Name: "common", Path: "/b"},
			{Name: "other", Path: "/c"}}}},
		Volumes: []site.Volume{
			{Name: "rows", Mirror: "backup@ct:/srv/rows/", Every: time.Hour}, {Name: "common", Shared: true, Mirror: "/copy"},
			{Name: "other"},
		},
	}
	got, err := Mirrors(dirs, s)
	want := []Mirror{
		{"rows", "db", "/s/sites/karoo/volumes/rows/db", "backup@ct:/srv/rows/db", time.Hour},
		{"common", "@all", "/s/sites/karoo/volumes/common/@all", "/copy", 0},
		{"rows", "web", "/s/sites/karoo/volumes/rows/web", "backup@ct:/srv/rows/web", time.Hour},
	}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %v (%v), want %v", got, err, want)
	}
	for _, bad := range []string{"srv/x", "host:relative", "-oProxyCommand=x:/y", ":/x"} {
		s.Volumes[0].Mirror = bad
		if _, err := Mirrors(dirs, s); problem.ExitCode(err) != int(problem.Mistake) {
			t.Errorf("%q gives %v", bad, err)
		}
	}
}

// TestMirrorHere mirrors into a directory of the host.
func TestMirrorHere(t *testing.T) {
	need.Program(t, "rsync")
	needRoot(t)
	dir := t.TempDir()
	m := Mirror{Volume: "rows", Node: "db", From: filepath.Join(dir, "from"), To: filepath.Join(dir, "deep", "to")}
	if _, err := m.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "is missing") {
		t.Errorf("without a volume: %v", err)
	}
	tryMirror(t, m, m.To)
	into := m
	into.To = filepath.Join(m.From, "inside")
	if _, err := into.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "into itself") {
		t.Errorf("into itself: %v", err)
	}
}

// tryMirror mirrors, changes and verifies. at is the mirror's path on this host.
func tryMirror(t *testing.T, m Mirror, at string) {
	t.Helper()
	zoo(t, m.From)
	sh(t, `rm -f "$1/whiteout"`, m.From) // devices are left out
	sent, err := m.Run(t.Context())
	if err != nil || sent < 1000 {
		t.Fatal(sent, err)
	}
	same(t, m.From, at)
	if all, err := m.Verify(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("it differs in %v (%v)", all, err)
	}
	if sent, err := m.Run(t.Context()); err != nil || sent != 0 {
		t.Errorf("%d bytes were sent again (%v)", sent, err)
	}
	// A damaged file keeps its size and its time.
	sh(t, `cd "$1"; touch -r a /tmp/.$$; printf TEXT | dd of=a conv=notrunc status=none; touch -r /tmp/.$$ a; rm /tmp/.$$; rm full/3`,
		at)
	sh(t, `cd "$1"; rm will-go/x; chmod 600 full/8`, m.From)
	all, err := m.Verify(t.Context())
	found := map[string]string{}
	for _, d := range all {
		found[d.Path] = d.What
	}
	if err != nil || found["a"] != "content" || found["full/3"] != "missing" || found["full/8"] != "mode" ||
		found["will-go/x"] != "" {
		t.Errorf("it differs in %v (%v)", all, err)
	}
	if _, err := m.Run(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(at, "will-go", "x")); err != nil {
		t.Errorf("what was removed from the volume is gone from the mirror: %v", err)
	}
	if all, err := m.Verify(t.Context()); err != nil || len(all) != 1 || all[0].Path != "a" {
		t.Errorf("after it was mirrored by size and time, it differs in %v (%v)", all, err)
	}
	if sent, err := m.Repair(t.Context()); err != nil || sent == 0 {
		t.Errorf("%d bytes were sent to mend it (%v)", sent, err)
	}
	if all, err := m.Verify(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("mended, it differs in %v (%v)", all, err)
	}
}

// TestMirrorExchange: a node continuously exchanges a directory with a link to a directory of the
// host. rsync, which runs as root, copies no file of the host into a mirror.
func TestMirrorExchange(t *testing.T) {
	need.Program(t, "rsync")
	needRoot(t)
	dir := t.TempDir()
	secret, from := filepath.Join(dir, "host"), filepath.Join(dir, "from")
	for i := range 300 {
		write(t, filepath.Join(secret, fmt.Sprint(i)), "of the host")
		write(t, filepath.Join(from, "turns", fmt.Sprint(i)), "of the node")
	}
	if err := os.Symlink(secret, filepath.Join(from, "link")); err != nil {
		t.Fatal(err)
	}
	defer exchange(filepath.Join(from, "turns"), filepath.Join(from, "link"))()
	for i, end := 0, time.Now().Add(4*time.Second); time.Now().Before(end); i++ {
		m := Mirror{Volume: "rows", Node: "db", From: from, To: filepath.Join(dir, fmt.Sprint("to", i))}
		_, _ = m.Run(t.Context()) // rsync reports files that became links
		wantNone(t, m.To, "of the host")
	}
}

// TestMirrorConfined: a program that follows links, as old versions of rsync(1) did, cannot leave
// the volume, nor a mirror on this host.
//
// Promise (Trees that others write): Mirroring never leaves a volume, nor a mirror on this host.
func TestMirrorConfined(t *testing.T) {
	needRoot(t)
	dir := t.TempDir()
	m := Mirror{Volume: "rows", Node: "db", From: filepath.Join(dir, "from"), To: filepath.Join(dir, "to")}
	write(t, filepath.Join(dir, "host", "secret"), "of the host")
	for _, at := range []string{m.From, m.To} {
		write(t, filepath.Join(at, "own"), "of the node")
		if err := os.Symlink(filepath.Join(dir, "host"), filepath.Join(at, "link")); err != nil {
			t.Fatal(err)
		}
	}
	write(t, filepath.Join(dir, "bin", "rsync"), `#!/bin/sh
for last in "$@"; do from=$to; to=$last; done
cat "$from/own" "$from/link/secret" > "$to/stolen"; echo overwritten > "$to/link/secret"; readlink "$from/link" > "$to/says"; echo x > "$from/made"
exit 0`)
	if err := os.Chmod(filepath.Join(dir, "bin", "rsync"), 0o755); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	if _, err := m.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		"to/stolen": "of the node", "host/secret": "of the host", "to/says": filepath.Join(dir, "host") + "\n",
	} {
		if text, err := os.ReadFile(filepath.Join(dir, path)); err != nil || string(text) != want {
			t.Errorf("%s holds %q (%v)", path, text, err)
		}
	}
	if _, err := os.Lstat(filepath.Join(m.From, "made")); err == nil {
		t.Error("the volume was written to")
	}
}

// TestMirrorOld: a link in the mirror from an earlier run is not followed when files below its name
// are copied later. Devices are not copied.
func TestMirrorOld(t *testing.T) {
	need.Program(t, "rsync")
	needRoot(t)
	dir := t.TempDir()
	outside := filepath.Join(dir, "outside")
	write(t, filepath.Join(outside, "x"), "of the host")
	m := Mirror{Volume: "rows", Node: "db", From: filepath.Join(dir, "from"), To: filepath.Join(dir, "to")}
	sh(t, `mkdir "$1"; ln -s "$2" "$1/d"; mknod "$1/null" c 1 3`, m.From, outside)
	if _, err := m.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(filepath.Join(m.From, "d")); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(m.From, "d", "x"), "of the node")
	if _, err := m.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(outside, "x")); err != nil || string(text) != "of the host" {
		t.Errorf("the file outside holds %q (%v)", text, err)
	}
	if text, err := os.ReadFile(filepath.Join(m.To, "d", "x")); err != nil || string(text) != "of the node" {
		t.Errorf("the mirror holds %q (%v)", text, err)
	}
	if _, err := os.Lstat(filepath.Join(m.To, "null")); err == nil {
		t.Error("a device is in the mirror")
	}
}

func needRoot(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("only root mounts")
	}
}

// TestMirrorSSH mirrors over SSH, by key, to a server on this machine.
func TestMirrorSSH(t *testing.T) {
	need.Integration(t)
	dir := t.TempDir()
	server(t, dir)
	at := filepath.Join(dir, "archive", "db")
	m := Mirror{Volume: "rows", Node: "db", From: filepath.Join(dir, "from"), To: "root@127.0.0.1:" + at}
	tryMirror(t, m, at)
	// A server with an unknown key causes no password prompt.
	if err := os.Remove(filepath.Join(dir, "authorized")); err != nil {
		t.Fatal(err)
	}
	began := time.Now()
	_, err := m.Run(t.Context())
	if err == nil || !strings.Contains(err.Error(), "with a key") || time.Since(began) > 20*time.Second {
		t.Errorf("without a key: %v after %s", err, time.Since(began))
	}
}

// server runs sshd, and an ssh in PATH that knows it, without changing this machine's
// configuration.
func server(t *testing.T, dir string) {
	t.Helper()
	port := freePort(t)
	if os.Mkdir("/run/sshd", 0o755) == nil { // the chroot directory of sshd
		t.Cleanup(func() { os.Remove("/run/sshd") })
	}
	sh(t, `set -e; cd "$1"; mkdir bin; ssh-keygen -qt ed25519 -N '' -f host; ssh-keygen -qt ed25519 -N '' -f key; cp key.pub authorized
echo "[127.0.0.1]:$2 $(cut -d' ' -f1,2 host.pub)" > known
printf '#!/bin/sh\nexec /usr/bin/ssh -F none -p %s -i %s/key -o UserKnownHostsFile=%s/known "$@"\n' "$2" "$1" "$1" > bin/ssh; chmod 755 bin/ssh
printf 'Port %s\nListenAddress 127.0.0.1\nHostKey %s/host\nAuthorizedKeysFile %s/authorized\nStrictModes no\nUsePAM no\nPidFile none\nPermitRootLogin prohibit-password\n' "$2" "$1" "$1" > config`,
		dir, port)
	cmd := exec.Command("/usr/sbin/sshd", "-D", "-e", "-f", filepath.Join(dir, "config"))
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	// The thread must not end before sshd, since Pdeathsig is tied to it. Code that runs on
	// separate threads ends them.
	runtime.LockOSThread()
	t.Cleanup(runtime.UnlockOSThread)
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(said.String())
		}
	})
	t.Setenv("PATH", filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	for range 100 {
		c, err := net.Dial("tcp", "127.0.0.1:"+port)
		if err == nil {
			c.Close()
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Fatal("sshd does not answer")
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

// TestMirrorUser mirrors to a user who is not root on the other host, and back. Owners are kept.
func TestMirrorUser(t *testing.T) {
	need.Integration(t)
	dir, err := os.MkdirTemp("/var/tmp", "orrery-test-") // where another user has access
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	sh(t, `set -e; chmod 711 "$1"; cd "$1"; mkdir bin theirs; chown 4242:4242 theirs
printf '#!/bin/sh\nwhile [ "$1" != ct ]; do shift; done; shift; exec setpriv --reuid=4242 --regid=4242 --clear-groups sh -c "$*"\n' > bin/ssh; chmod 755 bin/ssh`,
		dir)
	t.Setenv("PATH", filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
	m := Mirror{Volume: "rows", Node: "db", From: filepath.Join(dir, "from"),
		To: "backup@ct:" + filepath.Join(dir, "theirs", "db")}
	sh(t, `set -e; mkdir "$1"; cd "$1"; echo x > x; chown 12:34 x; chmod 4755 x; ln x y`, m.From)
	if _, err := m.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if all, err := m.Verify(t.Context()); err != nil || len(all) != 0 {
		t.Errorf("it differs in %v (%v)", all, err)
	}
	back := filepath.Join(dir, "back")
	sh(t, `rsync -aHAXS --numeric-ids --modify-window=-1 --remote-option=--fake-super -e ssh backup@ct:"$1"/ "$2"/`,
		filepath.Join(dir, "theirs", "db"), back)
	same(t, m.From, back)
}

func TestMirrored(t *testing.T) {
	dirs := host.Dirs{State: t.TempDir()}
	now := time.Now().Round(0)
	for _, r := range []MirrorStatus{
		{Volume: "rows", Node: "db", To: "/x", At: now.Add(-2 * time.Hour)}, {Volume: "rows", Node: "web", To: "/x", At: now},
		{Volume: "rows", Node: "db", To: "/x", At: now, Problem: "it failed"},
	} {
		if err := r.Save(dirs, "karoo"); err != nil {
			t.Fatal(err)
		}
	}
	all, err := ReadMirrorStatus(dirs, "karoo")
	if err != nil || len(all) != 2 || all[0].Problem != "it failed" || !all[0].Good.Equal(now.Add(-2*time.Hour)) ||
		!all[1].Good.Equal(now) {
		t.Errorf("got %+v (%v)", all, err)
	}
	first, err := LockMirrors(t.Context(), dirs, "karoo", host.Holder{Who: "ada"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := LockMirrors(t.Context(), dirs, "karoo", host.Holder{}); problem.ExitCode(err) != int(problem.Locked) ||
		!strings.Contains(fmt.Sprint(err), "ada") {
		t.Errorf("a second run gives %v", errors.Unwrap(err))
	}
	first.Release()
}
