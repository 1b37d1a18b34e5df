package nodes

import (
	"io"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// TestListenForCaller: only the caller and root can connect to the socket for viewers, and the
// socket is removed in the end.
func TestListenForCaller(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	root := os.Geteuid() == 0
	for caller, owner := range map[string]int{"": os.Geteuid(), "4711": 4711, "0": os.Geteuid(), "-1": os.Geteuid(),
		"x": os.Geteuid()} {
		t.Setenv("SUDO_UID", caller)
		l, err := ListenForCaller("win")
		if err != nil {
			t.Fatal(err)
		}
		path := l.Addr().String()
		dir := filepath.Dir(path)
		for at, want := range map[string]struct {
			mode  os.FileMode
			owner int
		}{path: {0o600, owner}, dir: {map[bool]os.FileMode{true: 0o711, false: 0o700}[root && owner == 4711], os.Geteuid()}} {
			if !root && owner == 4711 {
				want.owner = os.Geteuid() // without root, SUDO_UID is ignored
			}
			info, err := os.Stat(at)
			if err != nil || info.Mode().Perm() != want.mode || int(info.Sys().(*syscall.Stat_t).Uid) != want.owner {
				t.Errorf("SUDO_UID=%s: %s is %v, %v", caller, at, info, err)
			}
		}
		go func() {
			if conn, err := l.Accept(); err == nil {
				_, _ = io.WriteString(conn, "RFB")
				conn.Close()
			}
		}()
		conn, err := net.Dial("unix", path)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(conn); err != nil || string(text) != "RFB" {
			t.Errorf("%q, %v", text, err)
		}
		conn.Close()
		if err := l.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(dir); err == nil {
			t.Errorf("%s is left", dir)
		}
	}
}
