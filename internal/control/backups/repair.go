package backups

import (
	"context"

	"orrery/internal/backup"
	"orrery/internal/backup/vault"
	"orrery/internal/control"
	"orrery/internal/control/hosts"
)

// Repaired is what came of repairing a directory of backups.
type Repaired struct {
	backup.Repaired
	Where string // the directory
}

// Damaged gives how many backups still lack something.
func (r *Repaired) Damaged() int {
	n := 0
	for i := range r.Backups {
		if !r.Backups[i].Is.Whole() {
			n++
		}
	}
	return n
}

// Repair takes what is damaged in a directory of backups again: from copies, and from the site that is meant, if there is one.
func Repair(ctx context.Context, c *control.Session, dir string, copies []string) (*Repaired, error) {
	if err := c.Allowed(); err != nil {
		return nil, err
	}
	set, err := meant(c, dir)
	if err != nil {
		return nil, err
	}
	return repair(ctx, c, dir, set, copies)
}

func repair(ctx context.Context, c *control.Session, dir string, set *backup.Set, copies []string) (*Repaired, error) {
	into, err := writable(dir)
	if err != nil {
		return nil, err
	}
	defer into.Close() //nolint:errcheck // what is written has been synced by then
	r := &backup.Repair{Into: into, Set: set}
	for _, text := range copies {
		v, _, err := vault.Open(text)
		if err != nil {
			return nil, err
		}
		defer v.Close() //nolint:errcheck // it was only read
		r.From = append(r.From, v)
	}
	watch := c.Watcher.Bytes("repair")
	r.Saw = watch.Add
	done, err := r.Run(ctx)
	watch.Close()
	if err != nil {
		return nil, err
	}
	tellRotten(c, into, &vault.Checked{Rotten: done.Rotten, Anew: true})
	return &Repaired{*done, into.Where()}, nil
}

// meant is the site that is meant, of which something may be taken; nil: none is.
func meant(c *control.Session, target string) (*backup.Set, error) {
	if _, err := c.Directory(); err != nil {
		c.Watcher.Tell(control.Event{Kind: control.Trouble, Text: "no site is meant (-C DIRECTORY): what is damaged is sought in copies only"})
		return nil, nil
	}
	if s, err := c.Load(); err == nil && hosts.Far(s) {
		c.Watcher.Tell(control.Event{Kind: control.Trouble, Text: "a backup is not yet repaired from a site with a host that is not local: what is damaged is sought in copies only"})
		return nil, nil
	}
	set, _, err := setOf(c, nil, target)
	return set, err
}
