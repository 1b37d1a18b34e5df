package control_test

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"orrery/internal/control"
	"orrery/internal/control/releases"
	"orrery/internal/control/sites"
	"orrery/internal/control/status"
)

// TestTwoAtOnce: operations on two sites of one machine run concurrently in one process. At the
// same time, another goroutine reads the state with the session of one of them. The race detector
// checks all of them (make test-race).
func TestTwoAtOnce(t *testing.T) {
	d := newDesk(t)
	other := *d.Session
	other.SiteDir = t.TempDir()
	if err := os.CopyFS(other.SiteDir, os.DirFS(d.dir)); err != nil {
		t.Fatal(err)
	}
	text := strings.NewReplacer(`"toykat"`, `"karoo"`, "10.99.1.", "10.99.2.").Replace(toykat)
	if err := os.WriteFile(filepath.Join(other.SiteDir, "site.toml"), []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	ended, stop := context.WithCancel(t.Context())
	var writers, reader sync.WaitGroup
	for _, c := range []*control.Session{d.Session, &other} {
		writers.Go(func() {
			if err := aLife(t.Context(), c); err != nil {
				t.Errorf("%s: %v", c.SiteDir, err)
			}
		})
	}
	reader.Go(func() {
		s := d.site()
		for ended.Err() == nil {
			_, _ = status.Read(t.Context(), d.Session, s, nil) // may find the site half way
		}
	})
	writers.Wait()
	stop()
	reader.Wait()
}

// aLife brings a site up, switches it to a release, and takes it down.
func aLife(ctx context.Context, c *control.Session) error {
	s, err := c.Load()
	if err != nil {
		return err
	}
	if _, _, err := sites.Up(ctx, c, s, nil, sites.UpOptions{}); err != nil {
		return err
	}
	if _, err := releases.Stage(ctx, c, s, nil, releases.StageOptions{Release: 701}); err != nil {
		return err
	}
	if _, err := releases.Switch(ctx, c, s, nil, releases.SwitchOptions{Release: 701}); err != nil {
		return err
	}
	if _, err := releases.Rollback(ctx, c, s, nil); err != nil {
		return err
	}
	_, err = sites.Down(ctx, c, s, nil, true)
	return err
}
