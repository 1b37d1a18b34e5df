package plan

import (
	"cmp"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"slices"
)

// Place gives a copy of the site in which every node has a host: the declared one, else the one it is
// already on, else the one with the largest share of processors and memory still free. Where there is a host of which nothing is known, a node that is
// on none of the others may be there, and is taken to be.
func Place(s *site.Site, hosts []observe.Host) (*site.Site, error) {
	placed := *s
	placed.Nodes = slices.Clone(s.Nodes)
	room := newRooms(s, hosts)
	lives, unknown := map[string]string{}, ""
	for i := range hosts {
		if hosts[i].Unknown {
			unknown = cmp.Or(unknown, hosts[i].Name)
		}
		for j := range hosts[i].Nodes {
			lives[hosts[i].Nodes[j].Name] = hosts[i].Name
		}
	}
	var homeless []*site.Node
	for i := range placed.Nodes {
		n := &placed.Nodes[i]
		if n.Host == "" {
			n.Host = cmp.Or(lives[n.Name], unknown)
		}
		if n.Host == unknown && unknown != "" {
			continue
		}
		if n.Host == "" {
			homeless = append(homeless, n)
			continue
		}
		if _, ok := room.byName[n.Host]; !ok {
			return nil, problem.New(problem.Mistake, "node %s is on host %q, which was not observed", n.Name, n.Host)
		}
		room.take(n)
	}
	for _, n := range homeless {
		host, ok := room.best(n)
		if !ok {
			return nil, problem.New(problem.Mistake, "node %s has no host: none has %.3g cpus and %d MiB free", n.Name, n.Limits.Cpus, n.Limits.Memory>>20).
				Try("declare another [host.…], lower its limits, or say host = … to overcommit one")
		}
		n.Host = host
		room.take(n)
	}
	return &placed, nil
}

// PlacedAsLive gives the site as Released does, with a host for every node.
func PlacedAsLive(s *site.Site, hosts []observe.Host, releases map[int]*site.Site) (*site.Site, error) {
	released, err := Released(s, hosts, releases)
	if err != nil {
		return nil, err
	}
	return Place(released, hosts)
}

type room struct {
	cpus, freeCpus     float64
	memory, freeMemory float64
	boundless          int // nodes on it without limits
}

// boundlessShare is how much of a host a node without limits counts for when the next one is placed: such nodes shall
// not all come to the same host.
const boundlessShare = 0.01

type rooms struct {
	names  []string // in order of declaration
	byName map[string]*room
}

func newRooms(s *site.Site, hosts []observe.Host) *rooms {
	r := &rooms{byName: map[string]*room{}}
	for i := range hosts {
		o := &hosts[i]
		if o.Unknown {
			r.byName[o.Name] = &room{} // nobody goes there who does not say so
			continue
		}
		cpus, memory := float64(o.Cpus), float64(o.Memory)
		if h, ok := s.Host(o.Name); ok {
			cpus, memory = cmp.Or(h.Cpus, cpus), cmp.Or(float64(h.Memory), memory)
		}
		r.names = append(r.names, o.Name)
		r.byName[o.Name] = &room{cpus: cpus, freeCpus: cpus, memory: memory, freeMemory: memory}
	}
	return r
}

func (r *rooms) take(n *site.Node) {
	h := r.byName[n.Host]
	h.freeCpus -= n.Limits.Cpus
	h.freeMemory -= float64(n.Limits.Memory)
	if n.Limits.Cpus == 0 && n.Limits.Memory == 0 {
		h.boundless++
	}
}

// best gives the host on which the scarcer of processors and memory is least scarce with the node on it. A node without
// limits fits anywhere.
func (r *rooms) best(n *site.Node) (string, bool) { return r.bestOf(r.names, n) }

// bestOf gives the best of some hosts.
func (r *rooms) bestOf(names []string, n *site.Node) (string, bool) {
	best, most := "", -1.0
	for _, name := range names {
		h := r.byName[name]
		share := min(share(h.freeCpus-n.Limits.Cpus, h.cpus), share(h.freeMemory-float64(n.Limits.Memory), h.memory)) -
			boundlessShare*float64(h.boundless)
		if (n.Limits.Cpus > 0 && h.freeCpus < n.Limits.Cpus) || (n.Limits.Memory > 0 && h.freeMemory < float64(n.Limits.Memory)) {
			continue
		}
		if best == "" || share > most {
			best, most = name, share
		}
	}
	return best, best != ""
}

func share(free, all float64) float64 {
	if all <= 0 {
		return 0
	}
	return free / all
}

// Build plans only the layers that nodes need and that their hosts do not have.
func Build(s *site.Site, hosts []observe.Host, goal Goal) (*Plan, error) {
	placed, err := PlacedAsLive(s, hosts, goal.Releases)
	if err != nil {
		return nil, err
	}
	d := newDraft(placed, hosts, goal)
	for i := range placed.Nodes {
		if n := &placed.Nodes[i]; goal.concerns(n.Name) {
			d.layer(d.hosts[n.Host], n)
		}
	}
	return d.sorted(), nil
}
