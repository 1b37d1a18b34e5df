// Package record keeps what a guest prints on its serial port while its machine runs: in a file in memory that QEMU has open, and that outlives the machine for as long as somebody has.
package record

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/host/process"
	"orrery/internal/visible"
)

// Most bounds what is recorded, in bytes. What comes after that is not.
const Most = 1 << 20

// Name is what the kernel calls a record that is open: it is on a file system of its own.
const Name = "/" + file

const file = "console"

// Make makes a record: to be appended to by QEMU, and for reading. Its file system is no larger, and nowhere mounted.
func Make() (to, record *os.File, err error) {
	if to, err = create(); err != nil {
		return nil, nil, err
	}
	if record, err = open(process.Host.File(os.Getpid(), fmt.Sprintf("fd/%d", to.Fd()))); err != nil {
		return nil, nil, errors.Join(err, to.Close())
	}
	return to, record, nil
}

func create() (*os.File, error) {
	system, err := unix.Fsopen("tmpfs", unix.FSOPEN_CLOEXEC)
	if err != nil {
		return nil, os.NewSyscallError("fsopen", err)
	}
	defer unix.Close(system) //nolint:errcheck // nothing was written to it
	if err := unix.FsconfigSetString(system, "size", fmt.Sprint(Most)); err != nil {
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
	fd, err := unix.Openat(root, file, unix.O_WRONLY|unix.O_CREAT|unix.O_APPEND|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return nil, os.NewSyscallError("openat", err)
	}
	return os.NewFile(uintptr(fd), file), nil
}

// Of opens the record that a QEMU has open. Should a guest have taken QEMU over, it may be anything else that such a one has.
func Of(pid int) (*os.File, error) {
	at := process.Host.File(pid, "fd")
	entries, err := os.ReadDir(at)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		path := filepath.Join(at, e.Name())
		if to, _ := os.Readlink(path); to == Name {
			return open(path)
		}
	}
	return nil, fs.ErrNotExist
}

// open opens a record for reading.
func open(path string) (*os.File, error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_NOCTTY|unix.O_CLOEXEC, 0)
	if err != nil {
		return nil, &os.PathError{Op: "open", Path: path, Err: err}
	}
	f := os.NewFile(uintptr(fd), file)
	info, err := f.Stat()
	if err == nil && !info.Mode().IsRegular() {
		err = errors.New("what is recorded of the console is no file")
	}
	if err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return f, nil
}

// Read gives what is in a record.
func Read(record *os.File) ([]byte, error) { return io.ReadAll(io.LimitReader(record, Most)) }

// Keep writes what is in a record to a file of the node's directory, and gives it.
func Keep(record *os.File, path string) []byte {
	text, _ := Read(record)
	_ = os.WriteFile(path, text, 0o600) // it is only told
	return text
}

// panicLine is how Linux begins the line that says why it panics.
const panicLine = "Kernel panic"

// Panic returns the line by which a guest's kernel has said why it panics, and the last lines that it has printed. It is never
// empty, and says so if the record has no room for them.
func Panic(text []byte) string {
	last := visible.LastLines(text)
	if last == "" {
		last = "its console is empty"
	}
	at := bytes.LastIndex(text, []byte(panicLine))
	switch {
	case at < 0 && len(text) >= Most:
		return "the record of its console was full before that"
	case at < 0:
		return last
	}
	cause, _, _ := bytes.Cut(text[at:min(len(text), at+maxCauseBytes)], []byte("\n"))
	return visible.Line(strings.TrimSpace(string(cause))) + "\n" + last
}

// maxCauseBytes bounds the line of a guest that says why its kernel panics.
const maxCauseBytes = 200

// LastWords are the last lines that a guest has printed.
func LastWords(text []byte) string {
	if len(text) == 0 {
		return ""
	}
	return "the last lines of its console:\n" + visible.LastLines(text)
}
