package cli

import (
	"bytes"
	"context"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/host"
	"orrery/internal/secret"
	"orrery/internal/site"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestLog: programs are logged. Output of nodes is shown as text, and secrets are redacted.
func TestLog(t *testing.T) {
	former := slog.Default()
	t.Cleanup(func() { slog.SetDefault(former) })
	dir := t.TempDir()
	value := `p"ss\word-` + "1234567"
	must(t, os.WriteFile(filepath.Join(dir, "key"), []byte(value), 0o600))
	s := &site.Site{Name: "x", Secrets: []site.Secret{{Name: "key", File: filepath.Join(dir, "key")}}}
	if _, err := secret.NewKeyring(s, host.Dirs{State: dir}).Value(context.Background(), "key"); err != nil {
		t.Fatal(err)
	}
	for _, wanted := range []string{"text", "json"} {
		var log bytes.Buffer
		must(t, startLog(&log, false, wanted, ""))
		c := host.Command{Args: []string{"true", value, "\x1b[31m"}, Env: []string{"HIDDEN=" + value}, Stdout: io.Discard}
		must(t, host.Exec(context.Background(), "portal", c.Args, c, nil))
		for _, want := range []string{"portal", "<secret key>", `x1b[31m`} {
			if !strings.Contains(strings.NewReplacer(`\u003c`, "<", `\u003e`, ">").Replace(log.String()), want) {
				t.Errorf("%s: %q is not in\n%s", wanted, want, log.String())
			}
		}
		for _, never := range []string{"1234567", "\x1b", "HIDDEN"} {
			if strings.Contains(log.String(), never) {
				t.Errorf("%s: %q is in\n%s", wanted, never, log.String())
			}
		}
	}
	if err := startLog(io.Discard, false, "loud", ""); err == nil {
		t.Error("ORRERY_LOG=loud is no error")
	}
}
