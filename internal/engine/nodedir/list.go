package nodedir

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"sync"

	"orrery/internal/host"
	"orrery/internal/observe"
)

// Observe returns the engine's nodes of a site, or of all sites if site is "", sorted by name. It
// returns what is recorded of them. For each node with a readable record it calls look, which sets
// what the engine sees. Unless look changes the state, it is Stopped.
func (n *Nodes) Observe(site string, look func(*observe.Node)) ([]observe.Node, error) {
	found, err := n.Found(site)
	if err != nil {
		return nil, err
	}
	return observeFound(n.Dirs, found, look), nil
}

// ObserveHeads is like Observe for the nodes of all engines on a site, but reads only the fields that
// Head reads.
func ObserveHeads(dirs host.Dirs, site string, look func(*observe.Node)) ([]observe.Node, error) {
	found, err := findNodes(dirs, site, "", false, Dir.readHead)
	if err != nil {
		return nil, err
	}
	return observeFound(dirs, found, look), nil
}

// observeFound returns the found nodes, sorted by site and name, after calling look for each.
func observeFound(dirs host.Dirs, found []Found, look func(*observe.Node)) []observe.Node {
	var nodes []observe.Node
	for _, f := range found {
		r, d := f.Record, Of(dirs, f.Site, f.ID)
		o := observe.Node{Node: r.Node, State: observe.Broken, Configured: r.Configured, Proven: r.Proven,
			ProvenAt: r.ProvenAt, Active: r.Active, Doubt: r.Doubt, Resume: d.Move().MustResume()}
		if f.Whole {
			d.Results().Read(&o)
			o.State = observe.Stopped
			look(&o)
		}
		nodes = append(nodes, o)
	}
	slices.SortFunc(nodes, func(a, b observe.Node) int {
		return cmp.Or(strings.Compare(a.Site, b.Site), strings.Compare(a.Name, b.Name))
	})
	return nodes
}

// Each calls do for all of the engine's nodes of a site at once.
func (n *Nodes) Each(site string, do func(*Record) error) error {
	found, err := n.Found(site)
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	errs := make([]error, len(found))
	for i, f := range found {
		all.Go(func() { errs[i] = do(f.Record) })
	}
	all.Wait()
	return errors.Join(errs...)
}
