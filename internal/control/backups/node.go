package backups

import (
	"context"
	"fmt"
	"slices"
	"time"

	"orrery/internal/apply"
	"orrery/internal/backup/ferry"
	"orrery/internal/backup/vault"
	"orrery/internal/control"
	"orrery/internal/control/snapshots"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/snapshot"
	"orrery/internal/text/humanize"
)

// ReplacedNode is the result of restoring one node in place.
type ReplacedNode struct {
	*snapshots.Restored        // nil if the node was not restored
	Site                string // name of the site
	// attributes that the target file system does not support, and the number of files concerned
	Lacked map[string]int
}

// ReplaceNode restores one node of the site from a backup, in place of its current state, on the
// host that it is on now. It makes a snapshot on that host from the backup's data of the node, and
// restores the snapshot. The rest of the site keeps running.
func ReplaceNode(ctx context.Context, c *control.Session, where, node string) (*ReplacedNode, error) {
	v, id, m, err := vault.OpenOne(where)
	if err != nil {
		return nil, err
	}
	defer v.Close() //nolint:errcheck // it was only read
	s, err := c.Load()
	if err != nil {
		return nil, err
	}
	if m.Site != s.Name {
		return nil, problem.New(problem.Refused, "this is a backup of site %s, not of %s; nothing was done", m.Site,
			s.Name).At(v.Where()).Try("name another backup, or another site with -C")
	}
	f, err := c.Hosts(ctx, s)
	if err != nil {
		return nil, err
	}
	done := &ReplacedNode{Site: s.Name}
	err = c.RunLocked(ctx, s, f, func(account *control.JournalWriter) error {
		h, err := hostOf(ctx, s, f, node)
		if err != nil {
			return err
		}
		part := nodePart(m, s, node)
		if len(part.Nodes) == 0 {
			return problem.New(problem.Usage, "the backup has no node %s", node).At(v.Where()).
				Try("it contains %s", humanize.List(nodeNames(m), 12))
		}
		why := fmt.Sprintf("All changes to node %s and its volumes since %s would be lost.", node,
			m.Time.Local().Format(time.DateTime))
		if _, err := c.Confirmer.Ask(control.Question{About: control.Replace, Site: s.Name, Why: why}); err != nil {
			return err
		}
		if _, err := c.AskProduction(s, why); err != nil {
			return err
		}
		p := &ferry.RestorePart{ID: id, Title: vault.Title(v, id), Manifest: part, Node: node}
		watch := c.Watcher.Bytes("restore")
		laid, err := stageOn(ctx, h, p, vault.NewPieces(v), watch.Add)
		watch.Close()
		if err != nil {
			return err
		}
		done.Lacked = laid.Lacked
		taken, err := findSnapshot(ctx, h, p.SnapshotID())
		if err == nil {
			done.Restored, err = snapshots.RestoreOnce(ctx, c, account, s, f, h, taken,
				fmt.Sprintf("node %s in %s", node, vault.Title(v, id)))
		}
		return err
	})
	return done, err
}

// hostOf returns the host that has the live instance of a node.
func hostOf(ctx context.Context, s *site.Site, f *apply.Fleet, name string) (*apply.HostClient, error) {
	seen, err := f.Observe(ctx)
	if err != nil {
		return nil, err
	}
	for i, h := range f.All {
		if slices.ContainsFunc(seen[i].Nodes, func(n observe.Node) bool {
			return n.Name == name && !n.Staged &&
				n.State != observe.Broken
		}) {
			return h, nil
		}
	}
	if _, declared := s.Node(name); !declared {
		return nil, problem.New(problem.Usage, "%s has no node %s", s.Name, name).Try("orrery ls lists its nodes")
	}
	if len(f.Unknown) > 0 {
		return nil, problem.New(problem.Unable, "node %s is on no host that answers; it may be on %s", name,
			humanize.List(f.Unknown, 12)).Try("restore it when all hosts answer")
	}
	return nil, problem.New(problem.Failed, "node %s does not exist and cannot be replaced", name).
		Try("orrery up %s creates it; then run the same command again", name)
}

// nodePart returns the part of a manifest that concerns one node. Of the volumes, it has those that
// belonged to the node alone on the host that it was on. The host of the node receives nothing
// else.
func nodePart(m *vault.Manifest, s *site.Site, name string) *vault.Manifest {
	part := *m
	part.Format, part.Hosts, part.Trees, part.Nodes, part.Secrets, part.Releases, part.Left, part.Layers = vault.Format,
		nil, nil, nil, nil, nil, nil, nil
	part.Key, part.Twin = s.Key(), s.Twin
	host := ""
	for i := range m.Nodes {
		if n := &m.Nodes[i]; n.Name == name {
			part.Nodes = append(part.Nodes, *n)
		}
	}
	for i := range m.Trees {
		if t := &m.Trees[i]; t.Kind == vault.PrivateTree && t.Node == name {
			host = t.Host
		}
	}
	for _, t := range m.Trees {
		if t.Node == name && t.Host == host && (t.Kind == vault.PrivateTree || t.Kind == vault.VolumeTree) {
			t.Host = ""
			part.Trees = append(part.Trees, t)
		}
	}
	return &part
}

// nodeNames returns the names of the nodes in a backup.
func nodeNames(m *vault.Manifest) (names []string) {
	for i := range m.Nodes {
		names = append(names, m.Nodes[i].Name)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// findSnapshot returns a snapshot that a host has.
func findSnapshot(ctx context.Context, h *apply.HostClient, id string) (*snapshot.Snapshot, error) {
	kept, _, err := h.Snapshots.List(ctx)
	if err != nil {
		return nil, err
	}
	i := slices.IndexFunc(kept, func(s *snapshot.Snapshot) bool { return s.ID == id })
	if i < 0 {
		return nil, problem.New(problem.Surprise, "host %s lacks the data that was sent to it", h.Name).
			Try("run the same command again")
	}
	return kept[i], nil
}
