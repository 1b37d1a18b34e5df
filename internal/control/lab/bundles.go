package lab

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"time"

	"orrery/internal/control"
	"orrery/internal/lab/bundle"
	"orrery/internal/problem"
)

// Bundles returns the directory in which runs store their bundles by default.
func Bundles(c *control.Session) string { return filepath.Join(c.Dirs.State, bundlesName) }

const bundlesName = "lab"

// Find returns the directory of a bundle. Name is its path or, for a bundle in the default
// directory, its ID.
func Find(c *control.Session, name string) (string, error) {
	if _, err := os.Stat(filepath.Join(name, bundle.ManifestFile)); err == nil {
		return name, nil
	}
	if !strings.Contains(name, "/") {
		if dir := filepath.Join(Bundles(c), name); isDir(dir) {
			return dir, nil
		}
	}
	p := problem.New(problem.Usage, "%s is not a bundle", name)
	heads, _ := bundle.List(Bundles(c))
	ids := make([]string, len(heads))
	for i, h := range heads {
		ids[i] = h.ID
	}
	if near := problem.Suggest(name, ids); near != "" {
		return "", p.Try("did you mean %s?", near)
	}
	return "", p.Try("orrery lab ls lists the bundles on this host")
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// State returns the state of a run. It distinguishes a run that is under way from one that was
// killed.
func State(h bundle.Manifest, dir string) string {
	if h.State == bundle.Running && !bundle.IsLocked(dir) {
		return "killed"
	}
	return string(h.State)
}

// openBundle opens the bundle of an unfinished run of the experiment, or creates a new one.
func openBundle(ctx context.Context, c *control.Session, told Watcher, o Options) (*bundle.Writer, *bundle.Contents,
	error) {
	e := o.Experiment
	h := bundle.Manifest{
		Format: bundle.Format, Orrery: o.Orrery, Experiment: e.Name, Title: e.Title, Source: e.Source,
		Digest: bundle.Digest(e.Text), Part: e.Part, Who: control.UserName(),
		Began: time.Now(), State: bundle.Running, Seed: rand.Uint64() >> 11, Width: e.Width, Disturbed: e.Disturbed,
		Settings: settings(e), Tests: tests(e),
	}
	h.Host, _ = os.Hostname()
	dir := o.To
	if dir == "" {
		dir = filepath.Join(Bundles(c), e.Name+"-"+h.Began.Format("20060102-150405"))
	}
	if !o.Fresh {
		last, err := findUnfinished(ctx, c, told, h, o.To)
		if err != nil {
			return nil, nil, err
		}
		if last != "" {
			return resume(ctx, told, last, h)
		}
	}
	h.ID = filepath.Base(dir)
	w, err := bundle.Create(ctx, dir, h)
	if err != nil {
		return nil, nil, err
	}
	return w, &bundle.Contents{Dir: dir, Manifest: h}, w.WriteExperiment(e.Text)
}
