package nodedir

import (
	"cmp"
	"errors"
	"slices"
	"strings"
	"sync"

	"orrery/internal/engine"
	"orrery/internal/observe"
)

// Observe gives the engine's nodes of a site, or of all sites if the site is "", by name: what is on record of them and, of those that are whole, what the engine
// sees when it looks at them. Without that, they stand still.
func (n *Nodes) Observe(site string, look func(*observe.Node)) ([]observe.Node, error) {
	return n.observe(site, Dir.Read, look)
}

func (n *Nodes) observe(site string, read func(Dir) (*Record, error), look func(*observe.Node)) ([]observe.Node, error) {
	found, err := n.found(site, read)
	if err != nil {
		return nil, err
	}
	var nodes []observe.Node
	for _, f := range found {
		r := f.Record
		o := observe.Node{Node: r.Node, State: observe.Broken, Configured: r.Configured, Proven: r.Proven, ProvenAt: r.ProvenAt, Active: r.Active, Doubt: r.Doubt, Resume: n.Dir(engine.RefOf(&r.Node)).Resumes()}
		if f.Whole {
			o.Sick = n.Dir(engine.RefOf(&r.Node)).sick(r.ProvenAt)
			o.State = observe.Stopped
			look(&o)
		}
		nodes = append(nodes, o)
	}
	slices.SortFunc(nodes, func(a, b observe.Node) int {
		return cmp.Or(strings.Compare(a.Site, b.Site), strings.Compare(a.Name, b.Name))
	})
	return nodes, nil
}

// Each does something to all of the engine's nodes of a site, each by itself, at once.
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
