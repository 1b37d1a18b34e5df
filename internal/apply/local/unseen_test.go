package local

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"orrery/internal/apply"
	"orrery/internal/engine"
	"orrery/internal/image"
	"orrery/internal/observe"
	"orrery/internal/secret"
	"orrery/internal/tree"
)

// blind is an engine that cannot show the files of its nodes.
type blind struct {
	viewed
	ids, view error
}

func (b blind) Idmap(ref engine.Ref) (int, error) {
	first, err := b.viewed.Idmap(ref)
	return first, errors.Join(err, b.ids)
}

func (b blind) OpenRoot(ref engine.Ref) (*tree.Root, error) {
	if b.view != nil {
		return nil, b.view
	}
	return b.viewed.OpenRoot(ref)
}

// TestUnseenFiles: a node whose files cannot be read is not reported as free of drift. The reason
// is reported, in addition to what else was found.
func TestUnseenFiles(t *testing.T) {
	for what, c := range map[string]struct {
		spoil func(n *served) engine.Engine
		says  string
	}{
		"its ids": {func(n *served) engine.Engine {
			return blind{viewed: n.engine,
				ids: errors.New("no ids")}
		}, "no ids"},
		"its root": {func(n *served) engine.Engine {
			return blind{viewed: n.engine,
				view: errors.New("no root")}
		}, "no root"},
		"its private layer": {func(n *served) engine.Engine {
			n.must(os.RemoveAll(filepath.Join(n.engine.dir, "upper")))
			return n.engine
		}, "upper"},
		"its layers": {func(n *served) engine.Engine {
			n.must(os.RemoveAll(image.Open(n.dirs.State).Dir))
			return n.engine
		}, "no such file"},
	} {
		n := newServed(t)
		n.unit = "inactive"
		secrets := noSecrets{secret.NewKeyring(n.Site(), n.dirs)}
		w := ThisMachine("local", "karoo", n.dirs, map[string]engine.Engine{"fake": c.spoil(n)}, secrets)
		nodes, err := n.engine.List(t.Context(), "karoo")
		n.must(err)
		wanted, duties, err := n.Wanted(n.node)
		n.must(err)
		n.must(w.Nodes.DetectDrift(t.Context(), nodes, []apply.DesiredNode{{Node: wanted, Duties: duties}}))
		var kinds []observe.DriftKind
		for _, d := range nodes[0].Drift {
			if kinds = append(kinds, d.Kind); d.Kind == observe.DriftNode && (d.How != observe.Unresponsive ||
				!strings.Contains(d.Found, c.says)) {
				t.Errorf("%s cannot be seen, and what is said is %s", what, d)
			}
		}
		if !slices.Contains(kinds, observe.DriftNode) || !slices.Contains(kinds, observe.DriftService) {
			t.Errorf("%s cannot be seen, and found is %v", what, nodes[0].Drift)
		}
	}
}
