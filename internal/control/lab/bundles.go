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

// Bundles is where runs leave their bundles unless they are told otherwise.
func Bundles(c *control.Session) string { return filepath.Join(c.Dirs.State, bundlesName) }

const bundlesName = "lab"

// Find returns the directory of a bundle, which may be named by its path or, if it is where bundles
// are, by its id.
func Find(c *control.Session, name string) (string, error) {
	if _, err := os.Stat(filepath.Join(name, bundle.HeadFile)); err == nil {
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
	if near := problem.Nearest(name, ids); near != "" {
		return "", p.Try("did you mean %s?", near)
	}
	return "", p.Try("orrery lab ls lists those of this host")
}

func isDir(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// State tells how a run stands: one that is under way from one that was killed.
func State(h bundle.Head, dir string) string {
	if h.State == bundle.Running && !bundle.Busy(dir) {
		return "killed"
	}
	return string(h.State)
}

// openBundle opens the bundle of a run of the experiment that was not brought to its end, or makes a new one.
func openBundle(ctx context.Context, c *control.Session, told Watcher, o Options) (*bundle.Writer, *bundle.Contents,
	error) {
	e := o.Experiment
	h := bundle.Head{
		Format: bundle.Format, Orrery: o.Orrery, Experiment: e.Name, Title: e.Title, Source: e.Source,
		Digest: bundle.Digest(e.Text), Part: e.Part, Who: control.Who(),
		Began: time.Now(), State: bundle.Running, Seed: rand.Uint64() >> 11, Width: e.Width, Disturbed: e.Disturbed,
		Settings: settings(e), Tests: tests(e),
	}
	h.Host, _ = os.Hostname()
	dir := o.To
	if dir == "" {
		dir = filepath.Join(Bundles(c), e.Name+"-"+h.Began.Format("20060102-150405"))
	}
	if !o.Fresh {
		last, err := unfinished(ctx, c, told, h, o.To)
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
	return w, &bundle.Contents{Dir: dir, Head: h}, w.Experiment(e.Text)
}
