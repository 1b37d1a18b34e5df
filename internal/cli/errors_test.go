package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
)

// TestUnforeseen: an error about a full disk gets a cure and the exit status for a host that lacks
// something, whatever package returned it.
func TestUnforeseen(t *testing.T) {
	for number, cure := range map[unix.Errno]string{
		unix.ENOSPC: "orrery image gc", unix.EDQUOT: "orrery image gc", unix.EROFS: "mount it for writing",
		unix.EIO: "dmesg", unix.EMFILE: "ulimit",
	} {
		err := unexpected(t.Context(), fmt.Errorf("reading: %w", &fs.PathError{Op: "write", Path: "/x/lock", Err: number}))
		if problem.ExitCode(err) != int(problem.Unable) || !strings.Contains(err.Error(), cure) ||
			!strings.Contains(err.Error(), "/x/lock") {
			t.Errorf("%v: status %d, %v", number, problem.ExitCode(err), err)
		}
	}
	if err := unexpected(t.Context(), problem.New(problem.Failed,
		"it cannot be kept").Because(unix.ENOSPC)); problem.ExitCode(err) != int(problem.Unable) {
		t.Errorf("of a problem without a cure: %v", err)
	}
	known := []error{problem.New(problem.Mistake, "known").Because(unix.ENOSPC),
		problem.New(problem.Failed, "known").Because(unix.ENOSPC).Try("this")}
	for _, err := range append(known, nil, errors.New("other")) {
		if got := unexpected(t.Context(), err); got != err { //nolint:errorlint // the very same
			t.Errorf("%v became %v", err, got)
		}
	}
}

// TestInterruptedWork: after Ctrl-C, the exit status says so, whatever was interrupted, unless the
// verb returns a more specific status.
func TestInterruptedWork(t *testing.T) {
	ctx, interrupt := context.WithCancelCause(t.Context())
	signal := errors.New("interrupt signal received")
	failed := problem.New(problem.Failed, "no copy of it can be made").Because(fmt.Errorf("etc: %w", signal))
	if err := unexpected(ctx, failed); problem.ExitCode(err) != int(problem.Failed) {
		t.Errorf("of a run that goes on: %v", err)
	}
	interrupt(signal)
	if err := unexpected(ctx, failed); problem.ExitCode(err) != int(problem.Interrupted) ||
		!strings.Contains(err.Error(), "run the same command") {
		t.Errorf("status %d: %v", problem.ExitCode(err), err)
	}
	for kind, err := range map[problem.Kind]error{
		problem.Reverted: problem.New(problem.Reverted, "gone back").
			Because(signal), problem.Failed: problem.New(problem.Failed, "of another reason"),
	} {
		if got := problem.ExitCode(unexpected(ctx, err)); got != int(kind) {
			t.Errorf("%v: status %d", err, got)
		}
	}
}
