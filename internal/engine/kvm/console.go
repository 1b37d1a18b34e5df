package kvm

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/engine/process"
	"orrery/internal/visible"
)

// mostConsole bounds what is recorded of what a guest prints on its serial port while its machine runs, in bytes. What comes after that is not recorded.
const mostConsole = 1 << 20

// recorder is where QEMU records it: a file in memory, on a file system of its own that is no larger and nowhere mounted. QEMU appends to it.
func recorder() (*os.File, error) {
	system, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("fsopen", err)
	}
	defer unix.Close(system) //nolint:errcheck // nothing was written to it
	if err := unix.FsconfigSetString(system, "size", fmt.Sprint(mostConsole)); err != nil {
		return nil, os.NewSyscallError("fsconfig", err)
	}
	if err := unix.FsconfigCreate(system); err != nil {
		return nil, os.NewSyscallError("fsconfig", err)
	}
	root, err := unix.Fsmount(system, unix.FSMOUNT_CLOEXEC, unix.MOUNT_ATTR_NODEV|unix.MOUNT_ATTR_NOSUID|unix.MOUNT_ATTR_NOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("fsmount", err)
	}
	defer unix.Close(root) //nolint:errcheck // nothing was written to it
	fd, err := unix.Openat(root, recorded, unix.O_WRONLY|unix.O_CREAT|unix.O_APPEND|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, os.NewSyscallError("openat", err)
	}
	return os.NewFile(uintptr(fd), recorded), nil
}

// record opens what the guest of a running machine has printed, which outlives the machine as long as it is open. It is what QEMU has open by that name: should a guest
// have taken QEMU over, it may be anything else that such a one has.
func (m machine) record() (*os.File, error) {
	open := process.Host.File(m.qemu(), "fd")
	entries, err := os.ReadDir(open)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		path := filepath.Join(open, e.Name())
		if to, _ := os.Readlink(path); to == "/"+recorded {
			return again(path)
		}
	}
	return nil, fs.ErrNotExist
}

// recorded is the name of the file.
const recorded = "console"

// again opens a recorder for reading.
func again(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), recorded)
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("what is recorded of the console is no file")
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// keep writes what was recorded to the node's directory, and gives it.
func (m machine) keep(record *os.File) []byte {
	text, _ := io.ReadAll(io.LimitReader(record, mostConsole))
	_ = os.WriteFile(m.console(), text, 0o600) // it is only told
	return text
}

// lastWords are the last lines that a guest has printed on its console.
func lastWords(text []byte) string {
	if len(text) == 0 {
		return ""
	}
	text = text[max(0, len(text)-4<<10):]
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(string(text), "\r", "")), "\n")
	return visible.Text("the last lines of its console:\n" + strings.Join(lines[max(0, len(lines)-10):], "\n"))
}
