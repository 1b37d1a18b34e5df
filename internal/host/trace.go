package host

import (
	"context"
	"log/slog"
	"strings"
	"time"
)

// trace logs a command that has ended, if debug logging is on. It omits the environment and the
// input, because these may be secret.
func trace(ctx context.Context, place string, args []string, began time.Time, err error) {
	if !slog.Default().Enabled(ctx, slog.LevelDebug) {
		return
	}
	how := "ok"
	if err != nil {
		how = err.Error()
		if first, _, more := strings.Cut(how, "\n"); more {
			how = first
		}
	}
	slog.DebugContext(ctx, "ran", "on", place, "command", strings.Join(args, " "), "took",
		time.Since(began).Round(time.Microsecond), "result", how)
}
