package cli

import (
	"io"
	"log/slog"

	"orrery/internal/problem"
	"orrery/internal/secret"
	"orrery/internal/text/sanitize"
)

// startLog makes this process log on standard error which programs it runs, where and how long, if
// --verbose or ORRERY_LOG is set.
func startLog(to io.Writer, verbose bool, wanted, version string) error {
	options := &slog.HandlerOptions{Level: slog.LevelDebug, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Value.Kind() == slog.KindDuration || a.Value.Kind() == slog.KindInt64 {
			return a
		}
		return slog.String(a.Key, sanitize.Line(secret.Redact(a.Value.String())))
	}}
	switch {
	case wanted == "json":
		slog.SetDefault(slog.New(slog.NewJSONHandler(to, options)))
	case wanted == "text" || wanted == "" && verbose:
		slog.SetDefault(slog.New(slog.NewTextHandler(to, options)))
	case wanted != "":
		return problem.New(problem.Usage, "ORRERY_LOG: unknown format %q", wanted).Try(`set it to "text" or "json", or unset it`)
	}
	slog.Debug("orrery", "version", version)
	return nil
}
