package volume

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"golang.org/x/sys/unix"

	"orrery/test/need"
)

// TestMain runs integration tests in a separate mount namespace. If they are killed, the kernel
// unmounts what is left and releases the loop devices.
func TestMain(m *testing.M) {
	if need.Asked() && os.Getenv("ORRERY_TEST_MOUNTS") == "" {
		unshare, err := exec.LookPath("unshare")
		if err == nil {
			args := append([]string{"unshare", "--mount", "--propagation", "private", "--"}, os.Args...)
			err = syscall.Exec(unshare, args, append(os.Environ(), "ORRERY_TEST_MOUNTS=own"))
		}
		fmt.Fprintln(os.Stderr, "unshare:", err)
		os.Exit(1)
	}
	os.Exit(need.QuickInMemory(m))
}

// image makes a file system in a file and mounts it. Only the mount keeps the file and the loop
// device in use.
func image(t *testing.T, kind string, mkfs ...string) string {
	t.Helper()
	dir := t.TempDir()
	file, at := filepath.Join(dir, "image"), filepath.Join(dir, "mounted")
	f, err := os.Create(file)
	if err != nil {
		t.Fatal(err)
	}
	err = f.Truncate(512 << 20)
	f.Close()
	if err != nil {
		t.Fatal(err)
	}
	sh(t, `"$@"`, append(mkfs, file)...)
	if err := os.Mkdir(at, 0o755); err != nil {
		t.Fatal(err)
	}
	sh(t, `mount -t "$1" -o loop "$2" "$3" && rm "$2"`, kind, file, at)
	t.Cleanup(func() { _ = unix.Unmount(at, unix.MNT_DETACH) })
	return at
}
