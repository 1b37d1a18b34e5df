package backups

import (
	"context"
	"fmt"
	"time"

	"orrery/internal/backup"
	"orrery/internal/backup/vault"
	"orrery/internal/control"
	"orrery/internal/control/here"
	"orrery/internal/control/snapshots"
	"orrery/internal/engine/nodedir"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// Replaced is what came of putting a node back in its place.
type Replaced struct {
	*snapshots.Restored                // nil: it is not
	Site                string         // its name
	Lacked              map[string]int // what is not taken where it goes, and of how many files
}

// ReplaceNode puts one node of the site back as it was backed up, in the place of what it is now: what the backup has of it becomes a snapshot, and that is put back. The rest
// of the site goes on.
func ReplaceNode(ctx context.Context, c *control.Session, where, node string) (*Replaced, error) {
	v, id, m, err := vault.OpenOne(where)
	if err != nil {
		return nil, err
	}
	defer v.Close() //nolint:errcheck // it was only read
	s, h, _, err := c.Target(nil)
	if err != nil {
		return nil, err
	}
	if m.Site != s.Name {
		return nil, problem.New(problem.Refused, "this is a backup of site %s, not of %s; nothing was done", m.Site, s.Name).At(v.Where()).Try("name another backup, or another site with -C")
	}
	near, err := here.Of(h)
	if err != nil {
		return nil, err
	}
	done := &Replaced{Site: s.Name, Lacked: map[string]int{}}
	err = c.Locked(ctx, s, h, func(account *control.Account) error {
		here, err := liveNode(c, s, node)
		if err != nil {
			return err
		}
		why := fmt.Sprintf("What node %s and its volumes have written since %s would be lost.", node, m.Time.Local().Format(time.DateTime))
		if _, err := c.Asker.Ask(control.Question{About: control.Replace, Site: s.Name, Why: why}); err != nil {
			return err
		}
		if _, err := c.AskProduction(s, why); err != nil {
			return err
		}
		watch := c.Watcher.Bytes("restore")
		p := &backup.Pick{From: v, Manifest: m, Saw: watch.Add, Lacked: done.Lacked}
		taken, err := p.Snapshot(ctx, c.Dirs, s.Key(), node+"-"+id, here, near.ByName()[here.Engine])
		watch.Close()
		if err != nil {
			return err
		}
		done.Restored, err = snapshots.Once(ctx, c, account, s, h, taken, fmt.Sprintf("node %s in %s", node, vault.Title(v, id)))
		return err
	})
	return done, err
}

// liveNode gives what is on record of a node that is live.
func liveNode(c *control.Session, s *site.Site, name string) (*nodedir.Record, error) {
	all, err := nodedir.All(c.Dirs, s.Key())
	if err != nil {
		return nil, err
	}
	for _, f := range all {
		if f.Whole && f.Record.Name == name && !f.Record.Staged {
			return f.Record, nil
		}
	}
	if _, declared := s.Node(name); !declared {
		return nil, problem.New(problem.Usage, "%s has no node %s", s.Name, name).Try("orrery ls lists its nodes")
	}
	return nil, problem.New(problem.Failed, "node %s is not on this host, so it cannot be replaced", name).Try("orrery up %s makes it; then run the same command again", name)
}
