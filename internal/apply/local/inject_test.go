package local_test

import (
	"context"
	"slices"
	"testing"

	"orrery/internal/engine"
	"orrery/internal/engine/fake"
	"orrery/internal/host"
)

// injecting is an engine that can write files of nodes before they boot.
type injecting struct {
	*fake.Engine
	paths *[]string // the paths of these files
	fails error
}

func (i injecting) Disable(context.Context, engine.Ref, ...string) error { return nil }

func (i injecting) Inject(_ context.Context, _ engine.Ref, files ...host.File) error {
	if i.fails != nil {
		return i.fails
	}
	for _, f := range files {
		*i.paths = append(*i.paths, f.Path)
	}
	return nil
}

// TestInjectedOnce: files that were written before a node boots are not written again. If that is
// not possible or has failed, they are written once the node runs.
func TestInjectedOnce(t *testing.T) {
	for what, fails := range map[string]error{"it works": nil, "it fails": errWeak} {
		w := newWorld(t)
		w.site.Roles[0].Volumes = nil // inject skips nodes with volumes
		var paths []string
		w.host.Engines["fake"] = injecting{w.below.Engine, &paths, fails}
		w.settled(w.reach(w.up()))
		written := w.file(engine.RefOf(w.spelt("web")), "/etc/web") != "" // injecting does not write them in this test
		if injected := slices.Contains(paths, "/etc/web"); injected != (fails == nil) || written == injected {
			t.Errorf("%s: injected are %q, and written into the node: %t", what, paths, written)
		}
		w.site.Roles[0].Files[0].Content = []byte("second of {{.Node.Name}}\n")
		paths = nil
		w.begin(w.host.Dirs)
		w.host.Engines["fake"] = injecting{w.below.Engine, &paths, fails}
		w.settled(w.reach(w.up()))
		if got := w.file(engine.RefOf(w.spelt("web")), "/etc/web"); got != "second of web\n" || len(paths) > 0 {
			t.Errorf("%s: a node that runs has %q, and injected are %q", what, got, paths)
		}
	}
}
