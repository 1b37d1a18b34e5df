// Package render renders the templates of roles for a node. The result depends only on the site, so
// a plan can tell exactly which nodes a changed template affects.
package render

import (
	"net/netip"

	"orrery/internal/site"
)

// A View is a site as templates see it. It is created once and used for all nodes.
type View struct {
	site   *site.Site
	nodes  []*NodeView
	byName map[string]*NodeView
	byRole map[string][]*NodeView
	parsed map[string]*parsed
	chosen map[string][]*NodeView // cache of Select, by selector

	networks map[string]NetworkView
	named    []string // result of peers
}

// A NodeView is a node as templates see it.
type NodeView struct {
	Name      string
	ID        int
	Release   int      // release that the node belongs to, or 0
	Roles     []string // including those that they need, in order
	Groups    []string
	Host      string
	Addresses map[string]netip.Addr // by network
	Address   netip.Addr            // on the first network, or the zero Addr
	Cpus      float64
	Memory    int64 // bytes
	Vars      map[string]any
	model     *site.Node
}

// A SiteView is the site itself as templates see it.
type SiteView struct {
	Name       string
	Twin       string // name of the twin, or "" for the site itself
	Owner      string
	Production bool
	Vars       map[string]any
}

// A NetworkView is a network as templates see it.
type NetworkView struct {
	Name    string
	Subnet  netip.Prefix
	Gateway netip.Addr // the zero Addr if there is none
}

// New returns the view of a site.
func New(s *site.Site) *View {
	v := &View{
		site:   s,
		byName: make(map[string]*NodeView, len(s.Nodes)),
		byRole: map[string][]*NodeView{},
		parsed: map[string]*parsed{},
		chosen: map[string][]*NodeView{},

		networks: make(map[string]NetworkView, len(s.Networks)),
	}
	for _, n := range s.Networks {
		v.networks[n.Name] = NetworkView{n.Name, n.Subnet, n.Gateway}
	}
	for i := range s.Nodes {
		n := viewNode(s, &s.Nodes[i])
		v.nodes = append(v.nodes, n)
		v.byName[n.Name] = n
		for _, alias := range n.model.Aliases {
			v.byName[alias] = n
		}
		for _, role := range s.LookupRoles(n.model) {
			v.byRole[role.Name] = append(v.byRole[role.Name], n)
		}
	}
	return v
}

// Peers returns the nodes with a role, in order of id.
func (v *View) Peers(role string) []*NodeView { return v.byRole[role] }

// Node returns the view of a node of the site, by its name or by an alias.
func (v *View) Node(name string) *NodeView { return v.byName[name] }

func viewNode(s *site.Site, n *site.Node) *NodeView {
	view := &NodeView{
		Name: n.Name, ID: n.ID, Release: n.Release, Groups: n.Groups, Host: n.Host,
		Addresses: make(map[string]netip.Addr, len(n.NICs)),
		Cpus:      n.Limits.Cpus, Memory: n.Limits.Memory, Vars: s.TemplateVars(n),
		model: n,
	}
	for i, nic := range n.NICs {
		view.Addresses[nic.Network] = nic.Address
		if i == 0 {
			view.Address = nic.Address
		}
	}
	for _, role := range s.RolesOf(n) {
		view.Roles = append(view.Roles, role.Name)
	}
	return view
}
