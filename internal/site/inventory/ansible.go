package inventory

import (
	"maps"
	"slices"
	"strings"

	"orrery/internal/site"
)

// An ansibleGroup is a group in the format of Ansible's dynamic inventory.
type ansibleGroup struct {
	Hosts    []string       `json:"hosts,omitempty"`
	Children []string       `json:"children,omitempty"`
	Vars     map[string]any `json:"vars,omitempty"`
}

// Inventory returns the response to --list of Ansible's dynamic inventory, to be encoded as JSON.
// It has the site's groups by name, a group role_NAME for each role and host_NAME for each host,
// and the variables of all nodes in _meta. A "-" in a group's name becomes "_", because Ansible
// does not allow it.
func Inventory(s *site.Site) any {
	groups := map[string]*ansibleGroup{}
	add := func(name, node string) {
		g := groups[name]
		if g == nil {
			g = &ansibleGroup{}
			groups[name] = g
		}
		if len(g.Hosts) == 0 || g.Hosts[len(g.Hosts)-1] != node {
			g.Hosts = append(g.Hosts, node)
		}
	}
	vars := make(map[string]any, len(s.Nodes))
	for i, e := range entries(s) {
		vars[e.Name] = hostVars(s, &s.Nodes[i], e)
		for _, group := range e.Groups {
			add(groupName("", group), e.Name)
		}
		for _, role := range lookupRoles(s, &s.Nodes[i], e.Roles) {
			add(groupName("role_", role), e.Name)
		}
		if e.Host != "" {
			add(groupName("host_", e.Host), e.Name)
		}
	}
	list := map[string]any{"_meta": map[string]any{"hostvars": vars}}
	for name, g := range groups {
		list[name] = g
	}
	all := &ansibleGroup{Children: slices.Sorted(maps.Keys(groups)), Vars: map[string]any{}}
	maps.Copy(all.Vars, s.Vars)
	all.Vars["orrery_site"], all.Vars["orrery_production"] = s.Name, s.Production
	if s.Twin != "" {
		all.Vars["orrery_twin"] = s.Twin
	}
	for i := range s.Nodes {
		all.Hosts = append(all.Hosts, s.Nodes[i].Name)
	}
	list["all"] = all
	return list
}

// HostVars returns the response to --host of Ansible's dynamic inventory, to be encoded as JSON. It
// has the node's own vars and variables with its settings.
func HostVars(s *site.Site, n *site.Node) map[string]any {
	return hostVars(s, n, entryOf(s, n, roleNames(s)))
}

func hostVars(s *site.Site, n *site.Node, e entry) map[string]any {
	vars := make(map[string]any, len(e.Vars)+10)
	maps.Copy(vars, e.Vars)
	vars["ansible_user"] = n.Login()
	vars["orrery_id"] = e.ID
	vars["orrery_roles"] = e.Roles
	vars["orrery_groups"] = e.Groups
	vars["orrery_image"] = e.Image
	vars["orrery_engine"] = e.Engine
	vars["orrery_addresses"] = e.Addresses
	if e.Address != "" {
		vars["ansible_host"] = e.Address
	}
	if e.Host != "" {
		vars["orrery_host"] = e.Host
	}
	if e.Release != 0 {
		vars["orrery_release"] = e.Release
	}
	if len(e.Aliases) > 0 {
		vars["orrery_aliases"] = e.Aliases
	}
	if jump := jump(s, n.Host); jump != "" {
		vars["ansible_ssh_common_args"] = "-o ProxyJump=" + jump
	}
	if s.Twin != "" {
		vars["ansible_ssh_common_args"] = "-o ProxyCommand=\"" + throughHost(s, n) + "\""
	}
	return vars
}

// groupName converts a name to a legal group name that Ansible does not reserve.
func groupName(prefix, name string) string {
	name = prefix + strings.Map(func(r rune) rune {
		if r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' {
			return r
		}
		return '_'
	}, name)
	if name == "all" || name == "ungrouped" || name == "_meta" || name[0] >= '0' && name[0] <= '9' {
		return "group_" + name
	}
	return name
}
