package cli

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
)

// TestUnforeseen: whatever package met it, a full disk is told with a cure and the status of a host that lacks something.
func TestUnforeseen(t *testing.T) {
	for number, cure := range map[unix.Errno]string{
		unix.ENOSPC: "orrery image gc", unix.EDQUOT: "orrery image gc", unix.EROFS: "mount it for writing", unix.EIO: "dmesg", unix.EMFILE: "ulimit",
	} {
		err := unforeseen(fmt.Errorf("reading: %w", &fs.PathError{Op: "write", Path: "/x/lock", Err: number}))
		if problem.Exit(err) != int(problem.Unable) || !strings.Contains(err.Error(), cure) || !strings.Contains(err.Error(), "/x/lock") {
			t.Errorf("%v: status %d, %v", number, problem.Exit(err), err)
		}
	}
	for _, err := range []error{nil, errors.New("other"), problem.New(problem.Mistake, "known").Because(unix.ENOSPC)} {
		if got := unforeseen(err); got != err { //nolint:errorlint // the very same
			t.Errorf("%v became %v", err, got)
		}
	}
}
