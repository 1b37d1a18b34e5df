package control_test

import (
	"testing"

	"orrery/internal/control/backups"
	"orrery/internal/control/ci"
	"orrery/internal/control/layers"
	"orrery/internal/control/roster"
	"orrery/internal/control/sites"
	"orrery/internal/control/volumes"
	"orrery/internal/problem"
)

// TestNoSite: without a site, each verb that needs one reports that, and creates nothing.
func TestNoSite(t *testing.T) {
	d := newDesk(t)
	t.Chdir(t.TempDir())
	d.SiteDir = ""
	ctx, c := t.Context(), d.Session
	for verb, do := range map[string]func() error{
		"plan":          func() error { _, err := sites.Preview(ctx, d.Session, nil, sites.PreviewOptions{}); return err },
		"backup":        func() error { _, err := backups.Take(ctx, c, nil, t.TempDir(), backups.Options{}); return err },
		"volume ls":     func() error { _, _, err := volumes.List(ctx, c); return err },
		"volume verify": func() error { return volumes.Verify(ctx, c, nil, func(volumes.Compared) {}) },
		"volume adopt":  func() error { _, err := volumes.Adopt(ctx, c, "db", "web1", nil); return err },
		"image build":   func() error { _, err := layers.Build(ctx, c, nil); return err },
		"image ls HOST": func() error { _, err := layers.List(ctx, c, "sv2"); return err },
		"mirror pull":   func() error { _, err := layers.Pull(ctx, c, layers.PullOptions{}); return err },
		"host add":      func() error { _, err := roster.Add(ctx, c, "sv3", "10.8.1.3"); return err },
		"host remove":   func() error { _, err := roster.Remove(ctx, c, "sv2"); return err },
		"ci":            func() error { _, err := ci.New(c, nil, ci.Options{}); return err },
	} {
		if err := do(); !problem.Is(err, problem.Usage) {
			t.Errorf("%s: %v", verb, err)
		}
	}
	if calls := d.fault.Calls(); len(calls) > 0 {
		t.Errorf("the machine was asked for %q", calls)
	}
}
