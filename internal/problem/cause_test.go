package problem

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"

	"golang.org/x/sys/unix"
)

func TestDiskFull(t *testing.T) {
	for err, want := range map[error]bool{
		nil: false, unix.ENOSPC: true, unix.EIO: false,
		&fs.PathError{Op: "write", Path: "/x", Err: unix.EDQUOT}:              true,
		New(Failed, "x").Because(fmt.Errorf("while: %w", error(unix.ENOSPC))): true,
	} {
		if DiskFull(err) != want {
			t.Errorf("%v: %v", err, !want)
		}
	}
}

func TestReason(t *testing.T) {
	if got := PathErrorCause(fmt.Errorf("while: %w",
		&fs.PathError{Op: "open", Path: "/x", Err: unix.EACCES})); got != unix.EACCES {
		t.Errorf("the reason is %v", got)
	}
	if err := errors.New("x"); PathErrorCause(err) != err || PathErrorCause(nil) != nil {
		t.Error("what is of no file is its own reason")
	}
}
