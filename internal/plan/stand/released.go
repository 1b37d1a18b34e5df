package stand

import (
	"slices"

	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// Released returns a copy of the site in which every node is of the release that is live on its
// host, as the site of that release declares it. A node without a known live release is as the site
// declares it.
func Released(s *site.Site, hosts []observe.Host, releases map[int]*site.Site) (*site.Site, error) {
	whole := *s
	whole.Nodes = slices.Clone(s.Nodes)
	if s.Stage != 0 {
		return &whole, nil
	}
	live := map[string]int{}
	for i := range hosts {
		for name, release := range hosts[i].Releases.Active {
			live[name] = release
		}
	}
	nodes := map[int]map[string]*site.Node{} // of releases
	for i := range whole.Nodes {
		n := &whole.Nodes[i]
		release, known := live[n.Name]
		if !known || release == n.Release {
			continue
		}
		of, ok := releases[release]
		if !ok {
			return nil, &LostError{release, problem.New(problem.Failed,
				"release %d of node %s is live, but its site directory as staged is missing", release, n.Name).
				Try("orrery stage %s under another number, then switch to it", n.Name)}
		}
		if nodes[release] == nil {
			nodes[release] = of.NodesByName()
		}
		if made := nodes[release][n.Name]; made != nil {
			host := n.Host
			*n = *made
			n.Host = host
		}
	}
	return &whole, nil
}

// A LostError is returned if the site of a live release is not known.
type LostError struct {
	Release int
	problem *problem.Problem
}

func (e *LostError) Error() string { return e.problem.Error() }

// Unwrap returns the problem.
func (e *LostError) Unwrap() error { return e.problem }
