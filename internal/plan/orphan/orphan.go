// Package orphan finds volumes that no node uses any more. It is pure.
package orphan

import (
	"fmt"
	"slices"
	"strings"

	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// An Orphan is the directory of a volume that no node uses any more, because its node or the volume
// was renamed or removed. Its data is kept.
type Orphan struct {
	Host   string `json:"host"`
	Volume string `json:"volume"`
	Node   string `json:"node,omitempty"` // "" if all nodes shared it
	Path   string `json:"path,omitempty"`
	// Heir is the node that probably should have the data, and As is the name of its volume. Both
	// are "" if no node qualifies.
	Heir string `json:"heir,omitempty"`
	As   string `json:"as,omitempty"`
}

// IsUnclaimed reports whether the orphan was not set aside by volume adopt, which uses names that no
// node can have.
func (o Orphan) IsUnclaimed() bool { return !strings.Contains(o.Node, ".") }

// String describes the orphan and what the user can do about it.
func (o Orphan) String() string {
	if o.Node == "" {
		return fmt.Sprintf("volume %s, formerly shared, is not used by any node: it is kept at %s", o.Volume, o.Path)
	}
	what := fmt.Sprintf("volume %s of %s is not used by any node", o.Volume, o.Node)
	if o.Heir == "" {
		return what + ": orrery volume adopt " + o.Node + " NODE assigns it to another node"
	}
	adopt := "orrery volume adopt " + o.Node + " " + o.Heir
	if o.As != o.Volume {
		adopt += " " + o.Volume + "=" + o.As
	}
	return what + ", and " + o.Heir + " looks like its successor: " + adopt + " assigns the data to it"
}

// All returns the volumes on a host that no node of the site uses, neither as declared now nor in a
// kept release.
func All(s *site.Site, h *observe.Host, releases map[int]*site.Site) []Orphan {
	existing := volumesOn(h)
	if len(existing) == 0 || s.Stage != 0 {
		return nil
	}
	declared := usesOf(s)
	kept := []map[use]bool{declared}
	for _, of := range releases {
		kept = append(kept, usesOf(of))
	}
	var orphans []Orphan
	for _, v := range existing {
		if slices.ContainsFunc(kept, func(uses map[use]bool) bool { return uses[use{v.Name, v.Node}] }) {
			continue
		}
		o := Orphan{Host: h.Name, Volume: v.Name, Node: v.Node, Path: v.Path}
		if o.Node != "" {
			o.Heir, o.As = likelyOwner(s, h, declared, existing, o)
		}
		orphans = append(orphans, o)
	}
	return orphans
}

// A use is a volume and the node that uses it. The node is "" if nodes share the volume.
type use struct{ volume, node string }

func usesOf(s *site.Site) map[use]bool {
	uses := map[use]bool{}
	for i := range s.Nodes {
		for _, r := range s.RolesOf(&s.Nodes[i]) {
			for _, v := range r.Volumes {
				if s.Volume(v.Name).Shared {
					uses[use{v.Name, ""}] = true
				} else {
					uses[use{v.Name, s.Nodes[i].Name}] = true
				}
			}
		}
	}
	return uses
}

// volumesOn returns the volumes on a host: those with its state, and those at other paths that
// existing nodes mount. Volumes on NFS are not on the host.
func volumesOn(h *observe.Host) []observe.Volume {
	all := slices.Clone(h.Volumes)
	for _, n := range h.Nodes {
		for _, m := range n.Mounts {
			if m.Source != "" && !m.From().Everywhere && m.Copy == "" && !m.Shared {
				all = append(all, observe.Volume{Name: m.Volume, Node: n.Name,
					Path: strings.TrimSuffix(m.Source, "/") + "/" + n.Name})
			}
		}
	}
	return all
}

// likelyOwner returns the node and volume that probably should have the data of an orphan. That is the
// node with the id of the former node, or else a node that has no data yet for the same volume.
// Otherwise it is the same node under another volume's name.
func likelyOwner(s *site.Site, h *observe.Host, uses map[use]bool, existing []observe.Volume, o Orphan) (node,
	as string) {
	if former, ok := h.Node(o.Node); ok {
		for i := range s.Nodes {
			if n := &s.Nodes[i]; n.FullID() == former.ID && n.Name != o.Node && uses[use{o.Volume, n.Name}] {
				return n.Name, o.Volume
			}
		}
	}
	lacking := func(u use) bool {
		return uses[u] && !slices.ContainsFunc(existing, func(v observe.Volume) bool {
			return v.Name == u.volume &&
				v.Node == u.node
		})
	}
	var nodes, volumes []string
	for i := range s.Nodes {
		if name := s.Nodes[i].Name; lacking(use{o.Volume, name}) {
			nodes = append(nodes, name)
		}
	}
	if len(nodes) == 1 {
		return nodes[0], o.Volume
	}
	if near := problem.Suggest(o.Node, nodes); near != "" {
		return near, o.Volume
	}
	for u := range uses {
		if u.node == o.Node && lacking(u) {
			volumes = append(volumes, u.volume)
		}
	}
	if len(volumes) == 1 {
		return o.Node, volumes[0]
	}
	return "", ""
}
