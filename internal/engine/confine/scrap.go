package confine

import (
	"bytes"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/text/sanitize"
)

// maxStderrBytes limits the output of a confined program in bytes, because a guest can make it
// print.
const maxStderrBytes = 64 << 10

// OutputFile returns a file in memory for the output of a program. The file cannot grow.
func OutputFile(name string) (*os.File, error) {
	fd, err := unix.MemfdCreate(name, unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return nil, os.NewSyscallError("memfd_create", err)
	}
	f := os.NewFile(uintptr(fd), name)
	if err := f.Truncate(maxStderrBytes); err != nil {
		f.Close() //nolint:errcheck // nothing was written
		return nil, err
	}
	if _, err := unix.FcntlInt(f.Fd(), unix.F_ADD_SEALS, unix.F_SEAL_GROW|unix.F_SEAL_SHRINK); err != nil {
		f.Close() //nolint:errcheck // nothing was written
		return nil, os.NewSyscallError("fcntl", err)
	}
	return f, nil
}

// ReadOutput returns what a program has printed to an OutputFile.
func ReadOutput(f *os.File) string {
	text := make([]byte, maxStderrBytes)
	n, _ := f.ReadAt(text, 0)
	if end := bytes.IndexByte(text[:n], 0); end >= 0 {
		n = end
	}
	return sanitize.Text(strings.TrimSpace(string(text[:n])))
}
