package site

import (
	"path"
	"slices"
	"strings"
)

// Node returns a node by name.
func (s *Site) Node(name string) (*Node, bool) {
	return find(s.Nodes, name, func(n *Node) string { return n.Name })
}

// ByName returns the nodes by their names, for those that look up many.
func (s *Site) ByName() map[string]*Node {
	nodes := make(map[string]*Node, len(s.Nodes))
	for i := range s.Nodes {
		nodes[s.Nodes[i].Name] = &s.Nodes[i]
	}
	return nodes
}

// Role returns a role by name.
func (s *Site) Role(name string) (*Role, bool) {
	return find(s.Roles, name, func(r *Role) string { return r.Name })
}

// Network returns a network by name.
func (s *Site) Network(name string) (*Network, bool) {
	return find(s.Networks, name, func(n *Network) string { return n.Name })
}

// Image returns an image by name.
func (s *Site) Image(name string) (*Image, bool) {
	return find(s.Images, name, func(i *Image) string { return i.Name })
}

// Host returns a host by name.
func (s *Site) Host(name string) (*Host, bool) {
	return find(s.Hosts, name, func(h *Host) string { return h.Name })
}

// Volume returns a volume by name; one that is not declared is kept with the host's state.
func (s *Site) Volume(name string) Volume {
	if v, ok := find(s.Volumes, name, func(v *Volume) string { return v.Name }); ok {
		return *v
	}
	return Volume{Name: name}
}

// Secret returns a secret by name.
func (s *Site) Secret(name string) (*Secret, bool) {
	return find(s.Secrets, name, func(x *Secret) string { return x.Name })
}

func find[T any](list []T, name string, nameOf func(*T) string) (*T, bool) {
	for i := range list {
		if nameOf(&list[i]) == name {
			return &list[i], true
		}
	}
	return nil, false
}

// RolesOf returns the roles of a node and all that they need, each after what it needs.
// Unknown names and cycles, which Check reports, are passed over.
func (s *Site) RolesOf(n *Node) []*Role { return Closure(n.Roles, s.Role) }

// FoundBy returns the roles by which others find a node: its own, and those in whose place its simulator is.
func (s *Site) FoundBy(n *Node) []*Role {
	if len(n.StandsFor) == 0 {
		return s.RolesOf(n)
	}
	return Closure(slices.Concat(n.Roles, n.StandsFor), s.Role)
}

// Closure returns roles and all that they need, as RolesOf, of those that can be looked up.
func Closure(roles []string, lookUp func(name string) (*Role, bool)) []*Role {
	var ordered []*Role
	seen := map[string]bool{}
	var visit func(name string)
	visit = func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		role, ok := lookUp(name)
		if !ok {
			return
		}
		for _, needed := range role.NeedsRoles {
			visit(needed)
		}
		ordered = append(ordered, role)
	}
	for _, name := range roles {
		visit(name)
	}
	return ordered
}

// Exclusive reports whether a role has volumes that are not for the nodes of two releases at once.
func (r *Role) Exclusive() bool {
	return slices.ContainsFunc(r.Volumes, func(v VolumeUse) bool { return v.Exclusive })
}

// LiveOnly reports whether a role does something on live nodes only.
func (r *Role) LiveOnly() bool {
	return len(r.Active) > 0 || slices.ContainsFunc(r.Steps, func(s Step) bool { return s.When == Active })
}

// ServicesOf returns the services of roles, those that run only on a live node among them.
func ServicesOf(roles []*Role) []string {
	var all []string
	for _, r := range roles {
		all = slices.Concat(all, r.Services, r.Active)
	}
	return all
}

// SelfStarting reports whether roles have all that they need once their files are there: no step is
// done on the node, no other node is waited for, and the units of their services are in the layer,
// so that these may start when the node boots.
func SelfStarting(roles []*Role) bool {
	for _, r := range roles {
		if len(r.NeedsHealthy) > 0 || slices.ContainsFunc(r.Steps, func(s Step) bool { return s.When != Build }) ||
			len(r.Active) > 0 || r.rendersUnit() {
			return false
		}
	}
	return true
}

// rendersUnit reports whether the unit of a service is made by a template: the layer, which all
// nodes share, does not have it, so it can only be enabled on the node.
func (r *Role) rendersUnit() bool {
	return slices.ContainsFunc(r.Files, func(f File) bool {
		return f.Rendered() && slices.ContainsFunc(r.Services,
			func(s string) bool { return unitFile(s) == path.Base(f.Path) })
	})
}

// unitFile returns the name of the file in which systemd finds a unit: that of an instance is the
// one of its template (systemd.unit(5)).
func unitFile(unit string) string {
	if !strings.Contains(unit, ".") {
		unit += ".service"
	}
	if name, instance, ok := strings.Cut(unit, "@"); ok {
		return name + "@" + path.Ext(instance)
	}
	return unit
}
