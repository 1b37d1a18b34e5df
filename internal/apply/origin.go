package apply

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"

	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/check"
	"orrery/internal/text/humanize"
	"orrery/internal/text/sanitize"
)

// NewID returns a random id for a site.
func NewID() string { return strings.ToLower(rand.Text()[:16]) }

// checkOwner refuses hosts that have nodes of another site of the same name. Any machine can have a
// copy of the site directory, so sites are told apart by their ids. The id is that in the site file
// or, if there is none, the id that hosts recorded when the site was first applied there. Nodes
// without a recorded owner count as the site's own.
func (f *Fleet) checkOwner(hosts []observe.Host) error {
	if len(f.All) == 0 {
		return nil
	}
	s := f.Site()
	theirs, known := s.ID, ""
	var first *observe.Host // the first host that has nodes and a recorded owner
	for i := range f.All {
		h := &hosts[i]
		if h.Origin == "" {
			continue
		}
		if !check.ValidLabel(h.Origin) {
			return problem.New(problem.Surprise, "host %s reports an invalid site id for its nodes: %q",
				h.Name, problem.Truncate(h.Origin, 80)).Try("--without %s leaves it out", h.Name)
		}
		f.All[i].marked = h.Origin
		known = h.Origin
		switch nodes := nodeNames(h); {
		case len(nodes) == 0: // it has no nodes any more, so their owner does not matter
		case s.ID != "" && h.Origin != s.ID:
			return problem.New(problem.Surprise,
				"host %s has nodes of another site that is called %s, with the id %s: %s; this one has the id %s", h.Name,
				s.Key(), h.Origin, humanize.List(nodes, 8), s.ID).
				At("site.toml").Try("give one of the two another name; or, if they are of this one, write id = %q in [site]",
				h.Origin)
		case first != nil && h.Origin != first.Origin:
			return problem.New(problem.Surprise,
				"hosts %s and %s have nodes of two sites that are both called %s, with the ids %s and %s", first.Name, h.Name,
				s.Key(), first.Origin, h.Origin).
				At("site.toml").Try("leave out the host of the other site; or, if both belong to this site, remove origin.json of the site from one of them")
		case first == nil:
			first = h
		}
	}
	if first != nil {
		theirs = first.Origin
		if err := checkForeignNodes(s, hosts, theirs); err != nil {
			return err
		}
	}
	if theirs == "" {
		theirs = known
	}
	if theirs == "" && len(f.Unknown) == 0 { // else a host that does not answer may have an id
		theirs = NewID()
	}
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.origin = theirs
	return nil
}

// checkForeignNodes refuses a site without an id that declares none of the nodes that the hosts have for a
// site of its name. Most likely it is another site, and applying it would remove all those nodes.
func checkForeignNodes(s *site.Site, hosts []observe.Host, id string) error {
	if s.ID != "" || s.Twin != "" || len(s.Nodes) == 0 ||
		!slices.ContainsFunc(s.Hosts, func(h site.Host) bool { return !h.Local() }) {
		return nil
	}
	var at, nodes []string
	for i := range hosts {
		names := nodeNames(&hosts[i])
		if slices.ContainsFunc(names, func(name string) bool { _, ours := s.Node(name); return ours }) {
			return nil
		}
		if len(names) > 0 {
			at, nodes = append(at, hosts[i].Name), append(nodes, names...)
		}
	}
	return problem.New(problem.Surprise, "the nodes on %s belong to a site %s that has none of the nodes of this one: %s",
		humanize.List(at, 8), s.Key(), humanize.List(nodes, 8)).
		At("site.toml").Try("if it is another site, give one of the two another name; if it is this one, write id = %q in [site]",
		id)
}

// nodeNames returns the names of the nodes that a host has completely or in part.
func nodeNames(h *observe.Host) (names []string) {
	add := func(name string) { names = append(names, problem.Truncate(sanitize.Line(name), 80)) }
	for i := range h.Nodes {
		add(h.Nodes[i].Name)
	}
	for i := range h.OutgoingMoves {
		add(h.OutgoingMoves[i].Name)
	}
	for i := range h.IncomingMoves {
		add(h.IncomingMoves[i].Name)
	}
	return names
}

// recordOwner records on the host which site owns its nodes, before anything is done there.
func (f *Fleet) recordOwner(ctx context.Context, h *HostClient) error {
	f.mutex.Lock()
	origin := f.origin
	f.mutex.Unlock()
	h.marking.Lock()
	defer h.marking.Unlock()
	if origin == "" || h.marked == origin {
		return nil
	}
	err := h.State.SetSiteID(ctx, origin)
	if err == nil {
		h.marked = origin
	}
	return err
}
