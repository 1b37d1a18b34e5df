package place

import (
	"cmp"

	"orrery/internal/observe"
	"orrery/internal/site"
)

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
