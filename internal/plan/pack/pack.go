// Package pack completes the steps of a plan: it adds the parts of the site that they need.
package pack

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"

	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/stand"
	"orrery/internal/site"
	"orrery/internal/site/inventory"
	"orrery/internal/site/render"
	"orrery/internal/site/secretspec"
	"orrery/internal/site/spec"
)

// A Packer completes steps with the parts of the site that they need. This happens just before a
// step runs, since the names of nodes depend on which releases are live then, and since most work
// would be wasted on steps that never run. A Packer may be used by several goroutines.
type Packer struct {
	site     *site.Site
	releases map[int]*site.Site // see Releases

	mu      sync.Mutex
	where   sync.RWMutex              // of homes and seen, which SecretText's callback needs while mu is held
	homes   map[string]string         // see SetHomes; written with both locks
	seen    map[string]string         // see SetObservedHomes; written with both locks
	sites   map[*site.Site]*site.Site // sites with their nodes placed
	makers  map[*site.Site]*spec.Builder
	tellers map[*site.Site]*inventory.Builder
	duties  map[*site.Node]*spec.RoleActions
}

// New returns a Packer for a site and for the site as each release declares it, by number.
func New(s *site.Site, releases map[int]*site.Site) *Packer {
	return &Packer{site: s, releases: releases}
}

// Site returns the site.
func (p *Packer) Site() *site.Site { return p.site }

// Releases returns, by number, the site as each release declares it that is or may become live.
func (p *Packer) Releases() map[int]*site.Site { return p.releases }

// SetSite replaces the site.
func (p *Packer) SetSite(s *site.Site) { p.site = s }

// AddRelease adds the site as a release declares it.
func (p *Packer) AddRelease(release int, s *site.Site) {
	if p.releases == nil {
		p.releases = map[int]*site.Site{}
	}
	p.releases[release] = s
}

// SiteOf returns the site as a release declares it.
func (p *Packer) SiteOf(release int) *site.Site {
	if s, ok := p.releases[release]; ok && p.site.Stage != release {
		return p.withHosts(s)
	}
	return p.withHosts(p.site)
}

// SetHomes sets the hosts of nodes for which the site declares none. If homes is nil, the hosts are
// unknown and the nodes may be anywhere. It must be called before steps are packed.
func (p *Packer) SetHomes(homes map[string]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.where.Lock()
	defer p.where.Unlock()
	p.homes = homes
	p.clearCaches()
}

// SetObservedHomes sets the hosts on which nodes were observed. They are used
// until SetHomes sets others.
func (p *Packer) SetObservedHomes(homes map[string]string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.where.Lock()
	defer p.where.Unlock()
	if !maps.Equal(p.seen, homes) {
		p.seen = homes
		p.clearCaches()
	}
}

// HomeOf returns the host on which a node is or will be, according to the plan or else to the observation, or ""
// if unknown.
func (p *Packer) HomeOf(node string) string {
	p.where.RLock()
	defer p.where.RUnlock()
	return cmp.Or(p.homes[node], p.seen[node])
}

// SourceOf returns the host on which a node was observed, or "".
func (p *Packer) SourceOf(node string) string {
	p.where.RLock()
	defer p.where.RUnlock()
	return p.seen[node]
}

// clearCaches clears the caches, which depend on where nodes are placed.
func (p *Packer) clearCaches() { p.sites, p.makers, p.tellers, p.duties = nil, nil, nil, nil }

// WithoutCaches returns a copy of the Packer with empty caches.
func (p *Packer) WithoutCaches() *Packer {
	p.mu.Lock()
	defer p.mu.Unlock()
	return &Packer{site: p.site, releases: p.releases, homes: p.homes, seen: p.seen}
}

// withHosts returns a site with its nodes on their hosts.
func (p *Packer) withHosts(s *site.Site) *site.Site {
	p.mu.Lock()
	defer p.mu.Unlock()
	homes := p.homes
	if homes == nil {
		homes = p.seen
	}
	if p.sites == nil {
		p.sites = map[*site.Site]*site.Site{}
	}
	if p.sites[s] == nil {
		p.sites[s] = s.WithHosts(homes)
	}
	return p.sites[s]
}

// LiveSite returns the site with every node as its live release declares it.
func (p *Packer) LiveSite(r observe.Releases) (*site.Site, error) {
	if p.site.Stage != 0 {
		return p.site, nil
	}
	return stand.Released(p.site, []observe.Host{{Releases: r}}, p.releases)
}

// Pack returns a step with all that its host needs. It calls live for the live site only if the
// step needs it.
func (p *Packer) Pack(s *plan.Step, live func() (*site.Site, error)) (*plan.Step, error) {
	packed := *s
	switch s.Kind {
	case plan.WriteNames:
		now, err := live()
		if err != nil {
			return nil, err
		}
		packed.Tell = p.allNames(now, s.Host)
	case plan.StartNode:
		err := p.packNode(&packed, live)
		if isUndeclared(err) { // it starts as it is
			err = nil
		}
		return &packed, err
	case plan.ConfigureNode, plan.RepairNode, plan.CheckNode, plan.RetireNode, plan.TakeVolumes, plan.ReturnVolumes,
		plan.ActivateNode:
		return &packed, p.packNode(&packed, live)
	}
	return &packed, nil
}

// packNode adds what the roles of a node do. For steps that rewrite the names, it adds these
// too.
func (p *Packer) packNode(s *plan.Step, live func() (*site.Site, error)) error {
	of, n, err := p.declarationOf(s.Node)
	if err != nil {
		return err
	}
	if s.Duties, err = p.dutiesOf(of, n); err != nil || s.Kind != plan.StartNode && s.Kind != plan.ConfigureNode {
		return err
	}
	if s.Node.Staged {
		s.Tell = p.namesFor(of, s.Host, n)
		return nil
	}
	now, err := live()
	if err != nil {
		return err
	}
	if as, ok := now.Node(n.Name); ok && as.Release == n.Release {
		of, n = now, as
	}
	s.Tell = p.namesFor(of, s.Host, n)
	return nil
}

// Desired returns the desired form of an existing node and what its roles do on it, or nil and nil
// if the node is not declared any more.
func (p *Packer) Desired(current *spec.Node) (*spec.Node, *spec.RoleActions, error) {
	of, n, err := p.declarationOf(current)
	if isUndeclared(err) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	d, err := p.dutiesOf(of, n)
	if err != nil {
		return nil, nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	wanted, err := p.maker(of).Node(n)
	return wanted, d, err
}

// SecretText renders a file of which a step has only the location. Value returns a part of a secret by the
// name under which hosts store the secret.
func (p *Packer) SecretText(ctx context.Context, t spec.SecretText,
	value func(ctx context.Context, stored, part string) (string, error)) ([]byte, error) {
	of := p.SiteOf(t.Release)
	n, ok := of.Node(t.Node)
	if !ok {
		return nil, &undeclaredError{t.Node}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	var secrets render.Secrets = func(name, part string) (string, error) {
		return value(ctx, secretspec.NameFor(of, name, n.Name), part)
	}
	return p.maker(of).SecretText(n, t.Role, t.Path, secrets)
}

// DutiesOf returns what the roles of a node do on it, as its release declares them.
func (p *Packer) DutiesOf(n *site.Node) (*spec.RoleActions, error) {
	return p.dutiesOf(p.SiteOf(n.Release), n)
}

func (p *Packer) dutiesOf(s *site.Site, n *site.Node) (*spec.RoleActions, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if d, ok := p.duties[n]; ok {
		return d, nil
	}
	d, err := p.maker(s).RoleActions(n)
	if err != nil {
		return nil, err
	}
	if p.duties == nil {
		p.duties = map[*site.Node]*spec.RoleActions{}
	}
	p.duties[n] = d
	return d, nil
}

// maker returns the maker of a site. The caller must hold the lock while it uses the maker.
func (p *Packer) maker(s *site.Site) *spec.Builder {
	if p.makers == nil {
		p.makers = map[*site.Site]*spec.Builder{}
	}
	if p.makers[s] == nil {
		p.makers[s] = spec.NewBuilder(s)
	}
	return p.makers[s]
}

// allNames returns the names for all nodes of a site on a host.
func (p *Packer) allNames(s *site.Site, host string) *inventory.PeerInfo {
	var here []*site.Node
	for i := range s.Nodes {
		if home := p.homeOf(&s.Nodes[i]); home == "" || home == host {
			here = append(here, &s.Nodes[i])
		}
	}
	names := p.namesFor(s, host, here...)
	names.HostNames = inventory.HostNames(s, here...)
	return names
}

// homeOf returns the host of a node, or "" if unknown.
func (p *Packer) homeOf(n *site.Node) string { return cmp.Or(n.Host, p.homes[n.Name]) }

// namesFor returns the names for nodes of a host. Each host has the SSH host keys of its own nodes and
// must not make keys for nodes of other hosts.
func (p *Packer) namesFor(s *site.Site, host string, nodes ...*site.Node) *inventory.PeerInfo {
	placed := p.withHosts(s)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.tellers == nil {
		p.tellers = map[*site.Site]*inventory.Builder{}
	}
	if p.tellers[s] == nil {
		p.tellers[s] = inventory.NewBuilder(placed)
	}
	names := p.tellers[s].Build(nodes...)
	if p.homes != nil && len(s.Hosts) > 1 {
		names.Peers = slices.DeleteFunc(slices.Clone(names.Peers), func(peer inventory.Peer) bool {
			n, ok := s.Node(peer.Node)
			return !ok || p.homeOf(n) != host
		})
	}
	return names
}

// declarationOf returns the declaration of an existing node, and the site that contains it.
func (p *Packer) declarationOf(n *spec.Node) (*site.Site, *site.Node, error) {
	s := p.SiteOf(n.Release)
	if declared, ok := s.Node(n.Name); ok && declared.Release == n.Release {
		return s, declared, nil
	}
	return nil, nil, &undeclaredError{n.Name}
}

// An undeclaredError is returned for an existing node that the site no longer declares.
type undeclaredError struct{ node string }

func (e *undeclaredError) Error() string { return "node " + e.node + " is not declared" }

func isUndeclared(err error) bool {
	_, ok := err.(*undeclaredError) //nolint:errorlint // it is never wrapped
	return ok
}
