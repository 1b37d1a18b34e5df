// Package snapshots takes the state of nodes at one moment, and puts it back.
package snapshots

import (
	"context"
	"fmt"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/control/here"
	"orrery/internal/engine/nodedir"
	"orrery/internal/observe"
	"orrery/internal/phrase"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/snapshot"
	"orrery/internal/volume"
)

// A Snapshot is the state of nodes at one moment.
type Snapshot = snapshot.Snapshot

// A Part says what of nodes goes into a snapshot beside what they have written.
type Part struct {
	Memory bool // what virtual machines have in memory
}

// Take keeps the state of the nodes that selectors mean, or of all, as it is at one moment.
func Take(ctx context.Context, c *control.Session, s *site.Site, selectors []string, with Part) (*Snapshot, error) {
	h, chosen, err := c.Chosen(s, selectors)
	if err != nil {
		return nil, err
	}
	var taken *Snapshot
	err = c.Locked(ctx, s, h, func(*control.Account) error {
		taken, err = take(ctx, c, s, h, chosen, with)
		return err
	})
	return taken, err
}

func take(ctx context.Context, c *control.Session, s *site.Site, h *apply.Steered, chosen map[string]bool, with Part) (*Snapshot, error) {
	near, err := here.Of(h)
	if err != nil {
		return nil, err
	}
	o := snapshot.Options{Dirs: c.Dirs, Key: s.Key(), Engines: near.ByName(), Who: control.Who(), Guard: c.Guard, Memory: with.Memory}
	seen, err := h.Observe(ctx)
	if err != nil {
		return nil, err
	}
	for i := range seen.Nodes {
		n := &seen.Nodes[i]
		if n.State == observe.Broken || !c.Meant(n) || chosen != nil && !chosen[n.Name] {
			continue
		}
		r, err := nodedir.Of(c.Dirs, s.Key(), n.ID).Read()
		if err != nil {
			return nil, err
		}
		o.Nodes = append(o.Nodes, r)
	}
	if len(o.Nodes) == 0 {
		return nil, problem.New(problem.Failed, "none of these nodes of %s is on this host", s.Name).Try("orrery up")
	}
	return snapshot.Take(ctx, o)
}

// List gives the snapshots of a site on this host.
func List(c *control.Session, s *site.Site) ([]*Snapshot, error) {
	return snapshot.List(c.Dirs, s.Key())
}

// Size gives how large a snapshot is.
func Size(ctx context.Context, of *Snapshot) (volume.Size, error) { return volume.SizeOf(ctx, of.Dir) }

// Remove removes snapshots for good.
func Remove(ctx context.Context, c *control.Session, s *site.Site, ids []string) error {
	h, err := c.Here(s)
	if err != nil {
		return err
	}
	return c.Locked(ctx, s, h, func(*control.Account) error {
		for _, id := range ids {
			if _, err := snapshot.Open(c.Dirs, s.Key(), id); problem.Exit(err) == int(problem.Usage) {
				return err
			}
		}
		if _, err := c.AskProduction(s, fmt.Sprintf("%s would be deleted permanently.", phrase.Count(len(ids), "snapshot"))); err != nil {
			return err
		}
		for _, id := range ids {
			if err := snapshot.Remove(c.Dirs, s.Key(), id); err != nil {
				return err
			}
		}
		return nil
	})
}
