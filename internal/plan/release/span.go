package release

import (
	"orrery/internal/observe"
	"orrery/internal/plan/overlay"
	"orrery/internal/plan/place"
	"orrery/internal/site"
)

// spans are the networks that are on several hosts, live and in quarantines.
type spans struct {
	site  *site.Site
	of    map[int]*site.Site // by release
	hosts []observe.Host
	set   map[string]*member
	live  overlay.Spans
	apart map[int]overlay.Spans // by release
}

// newSpans determines the live networks that are on several hosts. A switch moves no node to another
// host, so they are the same before and after it, except for nodes that were not live before.
func newSpans(s *site.Site, of map[int]*site.Site, hosts []observe.Host, set map[string]*member) (*spans, error) {
	all := &spans{site: s, of: of, hosts: hosts, set: set, apart: map[int]overlay.Spans{}}
	if len(hosts) < 2 {
		return all, nil
	}
	var err error
	all.live, err = all.join(s, s.Key(), isPartlyLive)
	return all, err
}

// quarantine returns the spanning networks of a release's quarantine. They are as stage would make
// them: with all nodes of the release, and with their own VXLAN ids.
func (all *spans) quarantine(release int) (overlay.Spans, error) {
	if joints, known := all.apart[release]; known || len(all.hosts) < 2 {
		return joints, nil
	}
	s := all.of[release]
	if s == nil {
		s = all.site
	}
	joints, err := all.join(s, site.Quarantine(all.site.Key(), release),
		func(n *observe.Node) bool { return n.Staged && n.Release == release })
	all.apart[release] = joints
	return joints, err
}

// join joins the networks of a site, with each node on its host. That is the host of the set's
// member, or else of an instance that counts, or else of any instance. Only a node without
// instances is assumed to be where up would place it.
func (all *spans) join(s *site.Site, key string, counts func(n *observe.Node) bool) (overlay.Spans, error) {
	placed, err := place.Assign(s, all.hosts)
	if err != nil {
		return nil, err
	}
	homes := map[string]string{}
	for i := range placed.Nodes {
		homes[placed.Nodes[i].Name] = placed.Nodes[i].Host
	}
	for _, which := range []func(n *observe.Node) bool{func(*observe.Node) bool { return true }, isPartlyLive, counts} {
		for i := range all.hosts {
			h := &all.hosts[i]
			for j := range h.Nodes {
				if n := &h.Nodes[j]; homes[n.Name] != "" && which(n) {
					homes[n.Name] = h.Name
				}
			}
		}
	}
	for name, m := range all.set {
		if homes[name] != "" {
			homes[name] = m.host.Name
		}
	}
	joints, _, err := overlay.Join(placed, key, all.hosts, homes)
	return joints, err
}
