package tree

import (
	"errors"
	"fmt"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

// TestVanished: paths that have vanished or been replaced are told apart from other errors. A walk
// skips only the former.
func TestVanished(t *testing.T) {
	_, missing := os.Lstat(t.TempDir() + "/x")
	for _, err := range []error{missing, ErrGone, fmt.Errorf("x: %w", ErrNotRegular), unix.ELOOP, unix.ENOTDIR,
		unix.ESTALE} {
		if !IsGone(err) || IgnoreGone(err) != nil {
			t.Errorf("%v is no fault", err)
		}
	}
	for _, err := range []error{nil, unix.EIO, unix.EACCES, ErrTooLarge, errors.Join(unix.EIO)} {
		if IsGone(err) || IgnoreGone(err) != err {
			t.Errorf("%v is one", err)
		}
	}
}
