package screen

import (
	"context"
	"io"
	"os"

	"orrery/internal/host"
)

// MemberStreams returns writers to the output streams of a member, who may not read them, and a function
// that flushes both.
func MemberStreams(ctx context.Context, out, errs io.Writer) (wideOut, wideErrs io.Writer, flush func()) {
	stdout, ok := out.(*os.File)
	stderr, ok2 := errs.(*os.File)
	if !ok || !ok2 {
		return out, errs, func() {}
	}
	first := newBacklog(ctx, stdout, host.HoldsLock)
	second := first
	if !host.SameFile(stdout, stderr) {
		second = newBacklog(ctx, stderr, host.HoldsLock)
	}
	return first, second, func() {
		first.Flush()
		second.Flush()
	}
}
