package backups

import (
	"context"
	"fmt"
	"io"

	"orrery/internal/apply"
	"orrery/internal/backup"
	"orrery/internal/backup/ferry"
	"orrery/internal/backup/vault"
	"orrery/internal/control"
	"orrery/internal/treesync"
)

// Repaired is the result of repairing a directory of backups.
type Repaired struct {
	backup.Repaired
	Where string // the directory
}

// Damaged returns how many backups still lack something.
func (r *Repaired) Damaged() int {
	n := 0
	for i := range r.Backups {
		if !r.Backups[i].After.IsEmpty() {
			n++
		}
	}
	return n
}

// Repair repairs what is damaged in a directory of backups. It looks for the data in copies, and on
// all hosts that answer of the site that the session selects, if there is one.
func Repair(ctx context.Context, c *control.Session, dir string, copies []string) (*Repaired, error) {
	if err := c.Allowed(); err != nil {
		return nil, err
	}
	return repair(ctx, c, dir, copies, func(r *backup.Repair) error { return useSelectedSite(ctx, c, r, dir) })
}

// repair does the work of Repair. From sets the site that may supply data.
func repair(ctx context.Context, c *control.Session, dir string, copies []string,
	from func(*backup.Repair) error) (*Repaired, error) {
	into, err := openWritable(dir)
	if err != nil {
		return nil, err
	}
	defer into.Close() //nolint:errcheck // what is written has been synced by then
	r := &backup.Repair{Into: into}
	if err := from(r); err != nil {
		return nil, err
	}
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
	reportCorrupt(c, into, &vault.Checked{Corrupt: done.Corrupt, Replaced: true})
	return &Repaired{*done, into.Where()}, nil
}

// useSelectedSite sets the site that may supply data, if the session selects one.
func useSelectedSite(ctx context.Context, c *control.Session, r *backup.Repair, target string) (err error) {
	if _, err := c.Directory(); err != nil {
		c.Watcher.Event(control.Event{Kind: control.Trouble,
			Text: "no site selected (-C DIRECTORY): only copies are searched for the damaged data"})
		return nil
	}
	s, err := c.Load()
	if err != nil {
		return err
	}
	if r.Selection, err = newSelection(c, s, nil, target); err != nil {
		return err
	}
	f, silent, err := c.ReachableHosts(ctx, s)
	if err != nil {
		return err
	}
	if silent != nil {
		c.Watcher.Event(control.Event{Kind: control.Trouble, Site: s.Key(),
			Text: fmt.Sprintf("not all hosts are searched for the damaged data: %v", silent)})
	}
	r.Ask = (&hostSearch{c, s.Key(), f, r.Into}).askHosts
	return nil
}

// A hostSearch asks hosts for data that they gave to backups and that was lost since.
type hostSearch struct {
	Session *control.Session
	key     string
	fleet   *apply.Fleet
	in      *vault.Repository
}

// askHosts asks the hosts that gave the data. A host that fails does not stop the search, because others
// may have the data.
func (s *hostSearch) askHosts(ctx context.Context, wanted map[vault.Digest]bool, into backup.Adder) error {
	failed := make([]error, len(s.fleet.All))
	err := s.fleet.ForEach(func(i int, h *apply.HostClient) error {
		one, err := ferry.NewSearch(s.in, s.key, h.Label, wanted)
		if err != nil || len(one.Wanted) == 0 {
			return err
		}
		failed[i] = treesync.Pipe(ctx, func(way io.ReadWriter) error { return one.Run(ctx, into, way) },
			func(way io.ReadWriter) error { return h.Backups.SendMissing(ctx, way) })
		return nil
	})
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	for i, why := range failed {
		if why != nil && err == nil {
			s.Session.Watcher.Event(control.Event{Kind: control.Trouble, Site: s.key,
				Text: fmt.Sprintf("host %s: the search for the damaged data failed: %v", s.fleet.All[i].Name, why)})
		}
	}
	return err
}
