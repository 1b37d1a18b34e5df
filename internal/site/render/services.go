package render

import (
	"fmt"
	"net/netip"
	"strconv"

	"orrery/internal/site"
	"orrery/internal/site/params"
	"orrery/internal/site/service"
	"orrery/internal/text/shell"
)

// A ServiceView is a service of a node as templates of roles on the node see it.
type ServiceView struct {
	Name      string
	Address   netip.Addr
	Interface string     // of the node, on the network of the service
	Own       netip.Addr // address of the node there
	Peers     []PeerView
	RouterID  int
	Priority  int    // the first node of the service has the highest
	Advertise string // in seconds
}

// A PeerView is another node of a service.
type PeerView struct {
	Address netip.Addr
	MAC     string
}

// Priorities of the nodes of a service (RFC 5798). Those of the others differ by a step each, so no two nodes
// have the same.
const (
	firstPriority = 250
	priorityStep  = 10
)

// services returns the services of a node.
func (v *View) services(node string) (all []ServiceView) {
	n := v.byName[node]
	if n == nil {
		return nil
	}
	for i := range v.site.Services {
		s := &v.site.Services[i]
		view := ServiceView{Name: s.Name, Address: s.Address, RouterID: s.RouterID(),
			Advertise: strconv.FormatFloat(s.Advertise.Seconds(), 'f', -1, 64)}
		for k, name := range s.Nodes {
			other := v.byName[name]
			if other == nil {
				continue
			}
			if other == n {
				view.Own, view.Priority = n.Addresses[s.Network], firstPriority-priorityStep*k
			} else if a := other.Addresses[s.Network]; a.IsValid() {
				view.Peers = append(view.Peers, PeerView{a, site.MAC(v.site.Name, name, s.Network)})
			}
		}
		for k, nic := range n.model.NICs {
			if nic.Network == s.Network {
				view.Interface = fmt.Sprintf("eth%d", k)
			}
		}
		if view.Own.IsValid() && view.Interface != "" {
			all = append(all, view)
		}
	}
	return all
}

// healthScript returns a script for bash that runs the health checks of a node's roles, other than that which
// moves addresses. It ends with status 0 if all of them succeed.
func (v *View) healthScript(node string) string {
	n := v.byName[node]
	if n == nil {
		return ""
	}
	w := &healthWriter{node: n}
	fmt.Fprintf(&w.text, "common=(%s)\n", shell.Join(v.Environment(node)))
	for _, r := range v.site.RolesOf(n.model) {
		if r.Name == service.Role || len(r.Health) == 0 {
			continue
		}
		w.role(r.Name, params.Health(v.site, n.model, r), v.roleEnvironment(n.model, r))
	}
	return w.text.String()
}

// An AnswerView is an active service that a node answers, as templates of roles on the node see it.
type AnswerView struct {
	Name   string
	Kind   string       // one of service.Kinds
	Subnet netip.Prefix // of the nodes that use it
}

// answers returns the active services that a node answers.
func (v *View) answers(node string) (all []AnswerView) {
	for i := range v.site.Active {
		if a := &v.site.Active[i]; a.Has(node) {
			all = append(all, AnswerView{a.Name, a.Kind, v.networks[a.Network].Subnet})
		}
	}
	return all
}
