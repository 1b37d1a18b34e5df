// Package filling fills the volumes of a twin.
//
// They get copies of the original's volumes, which each host makes of its own data, so that no data
// leaves a host. Or they get the output of a program, which the control host sends.
package filling

import (
	"context"
	"sync"

	"orrery/internal/apply"
	"orrery/internal/observe"
	"orrery/internal/plan/place"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// FillTwin makes each host of the original fill the volumes of a twin, and calls tell for everything
// that is missing in the copies.
func FillTwin(ctx context.Context, original *apply.Fleet, twin *site.Site, tell func(left string)) error {
	homes, err := homesOf(ctx, original, twin.Original)
	if err != nil {
		return err
	}
	shares, err := CopiesByHost(twin, homes)
	if err != nil {
		return err
	}
	var telling sync.Mutex
	return original.ForEach(func(_ int, h *apply.HostClient) error {
		left, err := h.Twins.Fill(ctx, twin.Twin, shares[h.Name])
		telling.Lock()
		defer telling.Unlock()
		for _, what := range left {
			tell(what)
		}
		return err
	})
}

// homesOf returns a function that returns the host that has the data of a node, or "" if none has.
func homesOf(ctx context.Context, f *apply.Fleet, s *site.Site) (func(n *site.Node) (string, error), error) {
	if len(f.All)+len(f.Unknown) == 1 {
		return func(*site.Node) (string, error) { return f.All[0].Name, nil }, nil
	}
	seen, err := f.Observe(ctx)
	if err != nil {
		return nil, err
	}
	hosts, data := observe.HostsByNode(seen, 0), place.HostsByData(s, seen)
	return func(n *site.Node) (string, error) {
		switch on := hosts[n.Name]; {
		case len(on) > 1 && n.Host == "":
			return "", observe.DuplicateError(n.Name, on[0], on[1])
		case len(on) == 1:
			return on[0], nil
		case n.Host != "":
			return n.Host, nil
		}
		return data[n.Name], nil
	}, nil
}

// CopiesByHost returns the volumes that each host must copy. Home returns the host that has the data of a
// node of the original, or "" if none has.
func CopiesByHost(twin *site.Site, home func(n *site.Node) (string, error)) (map[string][]apply.VolumeCopy, error) {
	all := map[string][]apply.VolumeCopy{}
	ours, of := spec.NewBuilder(twin), spec.NewBuilder(twin.Original)
	for i := range twin.Nodes {
		n := &twin.Nodes[i]
		theirs, ok := twin.Original.Node(n.Name)
		if !ok {
			continue
		}
		shares, err := copiesOf(ours, n, of, theirs)
		if err != nil {
			return nil, err
		}
		if len(shares) == 0 {
			continue
		}
		on, err := home(theirs)
		if err != nil {
			return nil, err
		}
		if on != "" && n.Host != "" && on != n.Host {
			return nil, problem.New(problem.Unable,
				"node %s is on host %s with its volumes, and its twin is declared on %s; volumes are copied within one host", n.Name,
				on, n.Host).
				Try("orrery move %s --to %s, and run the same command again", n.Name, n.Host)
		}
		all[on] = append(all[on], shares...)
	}
	return all, nil
}

// copiesOf returns the volumes that both a node of a twin and the original node have.
func copiesOf(twin *spec.Builder, n *site.Node, of *spec.Builder, original *site.Node) (all []apply.VolumeCopy,
	err error) {
	ours, err := twin.Node(n)
	if err != nil {
		return nil, err
	}
	theirs, err := of.Node(original)
	if err != nil {
		return nil, err
	}
	for _, to := range ours.Mounts {
		for _, from := range theirs.Mounts {
			if from.Volume == to.Volume && from.From().Copyable {
				all = append(all, apply.VolumeCopy{Node: n.Name, From: from, To: to})
			}
		}
	}
	return all, nil
}
