package control_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/control/backups"
	"orrery/internal/control/ci"
	"orrery/internal/control/layers"
	"orrery/internal/control/roster"
	"orrery/internal/control/sites"
	"orrery/internal/control/twins"
	"orrery/internal/control/volumes"
	"orrery/internal/observe"
	"orrery/internal/problem"
)

// TestBrokenSite: each verb that reads the site directory itself reports the mistakes in it, and
// does nothing.
func TestBrokenSite(t *testing.T) {
	t.Parallel()
	c := newChanging(t)
	whole, err := os.ReadFile(filepath.Join(c.dir, "site.toml"))
	c.must(err)
	before, steps := c.nodes(), len(c.watch.steps)
	ctx := t.Context()
	for verb, do := range map[string]func() error{
		"plan": func() error { _, err := sites.Preview(ctx, c.Session, nil, sites.PreviewOptions{}); return err },
		"backup": func() error {
			_, err := backups.Take(ctx, c.Session, nil, c.to, backups.Options{})
			return err
		},
		"restore of a node": func() error { _, err := backups.ReplaceNode(ctx, c.Session, c.to, "web1"); return err },
		"volume ls":         func() error { _, _, err := volumes.List(ctx, c.Session); return err },
		"volume mirror": func() error {
			return volumes.Mirror(ctx, c.Session, volumes.MirrorOptions{}, func(volumes.Mirrored) {})
		},
		"volume verify": func() error { return volumes.Verify(ctx, c.Session, nil, func(volumes.Compared) {}) },
		"volume adopt":  func() error { _, err := volumes.Adopt(ctx, c.Session, "db", "web1", nil); return err },
		"image build":   func() error { _, err := layers.Build(ctx, c.Session, nil); return err },
		"image ls HOST": func() error { _, err := layers.List(ctx, c.Session, "sv2"); return err },
		"image gc HOST": func() error { _, err := layers.Remove(ctx, c.Session, "sv2"); return err },
		"image verify": func() error {
			return layers.Verify(ctx, c.Session, []string{"sv2"}, nil, func(string, string, error) {})
		},
		"mirror pull": func() error { _, err := layers.Pull(ctx, c.Session, layers.PullOptions{}); return err },
		"host add":    func() error { _, err := roster.Add(ctx, c.Session, "sv3", "10.8.1.3"); return err },
		"host remove": func() error { _, err := roster.Remove(ctx, c.Session, "sv2"); return err },
		"twin create": func() error { _, _, err := twins.Create(ctx, c.Session, twinOf("toykat", c.dir, "dev")); return err },
		"ci":          func() error { _, err := ci.New(c.Session, nil, ci.Options{}); return err },
		"of a twin: plan": func() error {
			_, err := sites.Preview(ctx, c.ofTwin("dev").Session, nil, sites.PreviewOptions{})
			return err
		},
	} {
		c.write("site.toml", string(whole)+"[nodes.web9]\n")
		if err := do(); err == nil || !strings.Contains(err.Error(), "site.toml") {
			t.Errorf("%s: %v", verb, err)
		}
		c.write("site.toml", string(whole))
		c.unchanged(verb, before, steps)
	}
	if all, _, err := twins.List(ctx, c.Session); err != nil || len(all) > 0 {
		t.Errorf("there are twins: %v, %v", all, err)
	}
}

// TestCutShortWithoutCopy: an interrupted switch is not completed without the copies from which its
// releases were staged. Nothing is changed, and the error says what is missing.
func TestCutShortWithoutCopy(t *testing.T) {
	d := newDesk(t)
	d.up()
	for _, number := range []int{700, 701} {
		d.stage(number)
	}
	d.turnTo(700)
	h := d.Host("local", "toykat", nil)
	r, err := h.Releases.Read(t.Context())
	d.must(err)
	set := func(number int) map[string]int { return map[string]int{"db": number, "web1": number, "web2": number} }
	r.Switch = &observe.Switch{To: set(701), End: set(700), Who: "ada"}
	d.must(h.Releases.Write(t.Context(), r))
	kept := filepath.Join(d.dirs.Release("toykat", 701), "site")
	d.must(os.Rename(kept, kept+"-away"))
	before := d.nodes()
	_, _, err = sites.Up(t.Context(), d.Session, d.site(), nil, sites.UpOptions{})
	d.wantExit(err, problem.Mistake, "release 701")
	d.wantNodes(before)
	if r, err = h.Releases.Read(t.Context()); err != nil || r.Switch == nil {
		t.Errorf("it is on record no longer that it was interrupted: %+v, %v", r, err)
	}
	d.must(os.Rename(kept+"-away", kept))
	d.up()
	d.wantLive(700)
	if r, err = h.Releases.Read(t.Context()); err != nil || r.Switch != nil {
		t.Errorf("on record is %+v, %v", r, err)
	}
}
