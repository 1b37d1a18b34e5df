package enter

import (
	"encoding/binary"
	"errors"
	"io"
	"os"
	"syscall"
)

// An execError means that the program could not be run. All other errors mean that the container
// could not be entered.
type execError struct{ errno syscall.Errno }

func (e execError) Error() string { return os.NewSyscallError("execve", e.errno).Error() }

func (e execError) Unwrap() error { return e.errno }

// readFailure reads the child's report. It returns nil if the child has become the command.
func readFailure(from *os.File) error {
	var record [16]byte
	_, err := io.ReadFull(from, record[:])
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	}
	step := binary.NativeEndian.Uint64(record[:8])
	errno := syscall.Errno(binary.NativeEndian.Uint64(record[8:]))
	if step == stepExec {
		return execError{errno}
	}
	return os.NewSyscallError(steps[min(step, stepExec)], errno)
}
