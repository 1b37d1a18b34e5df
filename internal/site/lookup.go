package site

import (
	"cmp"
	"path"
	"slices"
	"strings"
)

// Node returns the node called name, or false.
func (s *Site) Node(name string) (*Node, bool) {
	return find(s.Nodes, name, func(n *Node) string { return n.Name })
}

// NodesByName returns the nodes by name, for callers with many lookups.
func (s *Site) NodesByName() map[string]*Node {
	nodes := make(map[string]*Node, len(s.Nodes))
	for i := range s.Nodes {
		nodes[s.Nodes[i].Name] = &s.Nodes[i]
	}
	return nodes
}

// Role returns the role called name, or false.
func (s *Site) Role(name string) (*Role, bool) {
	return find(s.Roles, name, func(r *Role) string { return r.Name })
}

// Network returns the network called name, or false.
func (s *Site) Network(name string) (*Network, bool) {
	return find(s.Networks, name, func(n *Network) string { return n.Name })
}

// Image returns the image called name, or false.
func (s *Site) Image(name string) (*Image, bool) {
	return find(s.Images, name, func(i *Image) string { return i.Name })
}

// Host returns the host called name, or false.
func (s *Site) Host(name string) (*Host, bool) {
	return find(s.Hosts, name, func(h *Host) string { return h.Name })
}

// Volume returns the volume called name. If the site does not declare it, Volume returns one that
// is stored with the host's state.
func (s *Site) Volume(name string) Volume {
	if v, ok := find(s.Volumes, name, func(v *Volume) string { return v.Name }); ok {
		return *v
	}
	return Volume{Name: name}
}

// Secret returns the secret called name, or false.
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

// RolesOf returns the roles of a node and all roles that they need. Each role comes after the roles
// it needs. RolesOf skips unknown names and cycles, which package check reports.
func (s *Site) RolesOf(n *Node) []*Role { return TransitiveRoles(n.Roles, s.Role) }

// LookupRoles returns the roles under which other nodes find a node: its own roles, and those that its
// simulator replaces.
func (s *Site) LookupRoles(n *Node) []*Role {
	if len(n.StandsFor) == 0 {
		return s.RolesOf(n)
	}
	return TransitiveRoles(slices.Concat(n.Roles, n.StandsFor), s.Role)
}

// TransitiveRoles returns roles and all roles that they need, in the order of RolesOf. It skips names that
// lookUp does not find.
func TransitiveRoles(roles []string, lookUp func(name string) (*Role, bool)) []*Role {
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

// Exclusive reports whether a role has a volume that the nodes of two releases must not use at
// once.
func (r *Role) Exclusive() bool {
	return slices.ContainsFunc(r.Volumes, func(v VolumeUse) bool { return v.Exclusive })
}

// ActiveOnly reports whether a role has services or steps that run only on live nodes.
func (r *Role) ActiveOnly() bool {
	return len(r.Active) > 0 || slices.ContainsFunc(r.Steps, func(s Step) bool { return s.When == Active })
}

// ServicesOf returns the services of roles, including those that run only on live nodes.
func ServicesOf(roles []*Role) []string {
	var all []string
	for _, r := range roles {
		all = slices.Concat(all, r.Services, r.Active)
	}
	return all
}

// SelfStarting reports whether roles are ready as soon as their files are installed. No step runs
// on the node, the node waits for no other node, and the layer contains the units of all services.
// The services may then start when the node boots.
func SelfStarting(roles []*Role) bool {
	for _, r := range roles {
		if len(r.NeedsHealthy) > 0 || slices.ContainsFunc(r.Steps, func(s Step) bool { return s.When != Build }) ||
			len(r.Active) > 0 || r.rendersUnit() {
			return false
		}
	}
	return true
}

// rendersUnit reports whether a template produces the unit of a service. The layer, which all nodes
// share, does not contain such a unit, so it can only be enabled on the node.
func (r *Role) rendersUnit() bool {
	return slices.ContainsFunc(r.Files, func(f File) bool {
		return f.Rendered() && slices.ContainsFunc(r.Services,
			func(s string) bool { return unitFile(s) == path.Base(f.Path) })
	})
}

// unitFile returns the name of the file that contains a unit. For an instance it is the file of its
// template (systemd.unit(5)).
func unitFile(unit string) string {
	if !strings.Contains(unit, ".") {
		unit += ".service"
	}
	if name, instance, ok := strings.Cut(unit, "@"); ok {
		return name + "@" + path.Ext(instance)
	}
	return unit
}

// NumberOf returns the number of the i-th host: the declared one, or else its place among the hosts.
func (s *Site) NumberOf(i int) int { return cmp.Or(s.Hosts[i].Number, i+1) }
