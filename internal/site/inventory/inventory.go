// Package inventory describes a site to other programs: Ansible, ssh, and programs on nodes. It
// does no I/O. The same site results in the same output, byte for byte.
package inventory

import (
	"bytes"
	"encoding/json"

	"orrery/internal/site"
)

// A listing is the content of /etc/orrery/inventory.json on every node.
type listing struct {
	Site  about   `json:"site"`
	Nodes []entry `json:"nodes"` // in order of id
	// Roles has the names of the nodes with a role, even if another role needs it, in order of id.
	Roles  map[string][]string `json:"roles"`
	Groups map[string][]string `json:"groups"`
}

type about struct {
	Name string `json:"name"`
	// Twin is the name of the twin. Names and addresses are those of the original.
	Twin       string         `json:"twin,omitempty"`
	Owner      string         `json:"owner,omitempty"`
	Production bool           `json:"production"`
	Vars       map[string]any `json:"vars,omitempty"`
}

type entry struct {
	Name string `json:"name"`
	ID   int    `json:"id"`
	// release of the node; its number on the host combines both
	Release int      `json:"release,omitempty"`
	Aliases []string `json:"aliases,omitempty"` // nodes that it replaces
	// Roles include those that they need, each after those that it needs.
	Roles     []string          `json:"roles"`
	Groups    []string          `json:"groups"`
	Host      string            `json:"host,omitempty"`
	Image     string            `json:"image"`
	Engine    string            `json:"engine"`
	Address   string            `json:"address,omitempty"` // on its first network
	Addresses map[string]string `json:"addresses"`
	Vars      map[string]any    `json:"vars,omitempty"`
}

// JSON returns the content of inventory.json for the nodes of the site.
func JSON(s *site.Site) []byte {
	all := listing{
		Site:  about{s.Name, s.Twin, s.Owner, s.Production, s.Vars},
		Nodes: entries(s), Roles: map[string][]string{}, Groups: map[string][]string{},
	}
	for i := range s.Groups {
		all.Groups[s.Groups[i].Name] = orEmpty(s.Groups[i].Nodes)
	}
	for i := range all.Nodes {
		for _, role := range lookupRoles(s, &s.Nodes[i], all.Nodes[i].Roles) {
			all.Roles[role] = append(all.Roles[role], all.Nodes[i].Name)
		}
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	e.SetIndent("", " ")
	if err := e.Encode(all); err != nil {
		panic(err) // every value of a site can be encoded, because package check rejects numbers that cannot
	}
	return b.Bytes()
}

func entries(s *site.Site) []entry {
	roles := roleNames(s)
	all := make([]entry, len(s.Nodes))
	for i := range s.Nodes {
		all[i] = entryOf(s, &s.Nodes[i], roles)
	}
	return all
}

func entryOf(s *site.Site, n *site.Node, roles func(*site.Node) []string) entry {
	e := entry{
		Name: n.Name, ID: n.ID, Release: n.Release, Aliases: n.Aliases, Roles: orEmpty(roles(n)), Groups: orEmpty(n.Groups),
		Host: n.Host, Image: n.Image,
		Engine: n.Engine, Addresses: make(map[string]string, len(n.NICs)), Vars: s.VarsOf(n),
	}
	for _, nic := range n.NICs {
		e.Addresses[nic.Network] = nic.Address.String()
	}
	if len(n.NICs) > 0 {
		e.Address = n.NICs[0].Address.String()
	}
	return e
}

// orEmpty returns a list that is encoded as [] and not as null.
func orEmpty(list []string) []string {
	if list == nil {
		return []string{}
	}
	return list
}
