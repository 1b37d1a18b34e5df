package snapshots

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/snapshot"
	"orrery/internal/text/humanize"
	"orrery/internal/volume"
)

// A Snapshot is the state of nodes at one moment. Each host has the part with its own nodes.
type Snapshot struct {
	*snapshot.Snapshot          // merged from all hosts
	Lacking            []string `json:"lacking,omitempty"` // hosts that have lost their part

	fleet *apply.Fleet
	parts map[string]*snapshot.Snapshot // by host name
}

// List returns the snapshots of a site.
func List(ctx context.Context, c *control.Session, s *site.Site) ([]*Snapshot, error) {
	f, _, err := control.SelectedHosts(ctx, c, s, nil)
	if err != nil {
		return nil, err
	}
	all, _, err := list(ctx, f)
	for _, one := range all {
		if len(one.Lacking) > 0 {
			c.Watcher.Event(control.Event{Kind: control.Notice, Site: s.Key(),
				Text: fmt.Sprintf("the part of snapshot %s on host %s is lost", one.ID, humanize.List(one.Lacking, 12))})
		}
	}
	return all, err
}

// Size returns the size of a snapshot.
func Size(ctx context.Context, of *Snapshot) (volume.Size, error) {
	var sum volume.Size
	for _, h := range of.fleet.All {
		if of.parts[h.Name] == nil {
			continue
		}
		size, err := h.Snapshots.Size(ctx, of.ID)
		if err != nil {
			return sum, err
		}
		sum.Apparent += size.Apparent
		sum.Disk += size.Disk
		sum.Partial = sum.Partial || size.Partial
	}
	return sum, nil
}

// list returns the snapshots that hosts have, the oldest first. For each host it also returns the
// snapshots whose part is ready but not kept.
func list(ctx context.Context, f *apply.Fleet) (all []*Snapshot, ready [][]string, err error) {
	kept := make([][]*snapshot.Snapshot, len(f.All))
	ready = make([][]string, len(f.All))
	err = f.ForEach(func(i int, h *apply.HostClient) (err error) {
		kept[i], ready[i], err = h.Snapshots.List(ctx)
		return err
	})
	if err != nil {
		return nil, nil, err
	}
	parts := map[string]map[string]*snapshot.Snapshot{}
	for i, h := range f.All {
		for _, s := range kept[i] {
			if parts[s.ID] == nil {
				parts[s.ID] = map[string]*snapshot.Snapshot{}
			}
			parts[s.ID][h.Name] = s
		}
	}
	for _, of := range parts {
		all = append(all, mergeParts(f, of))
	}
	slices.SortFunc(all, func(a, b *Snapshot) int { return a.Time.Compare(b.Time) })
	return all, ready, nil
}

// mergeParts returns the snapshot that consists of the hosts' parts.
func mergeParts(f *apply.Fleet, parts map[string]*snapshot.Snapshot) *Snapshot {
	m := &Snapshot{fleet: f, parts: parts}
	said := map[string]bool{}
	for _, h := range f.All {
		part := parts[h.Name]
		if part == nil {
			continue
		}
		for _, name := range part.Hosts {
			said[name] = true
		}
		if m.Snapshot == nil {
			one := *part
			m.Snapshot = &one
			continue
		}
		m.Nodes, m.Volumes = slices.Concat(m.Nodes, part.Nodes), slices.Concat(m.Volumes, part.Volumes)
		m.Omitted, m.Left = slices.Concat(m.Omitted, part.Omitted), slices.Concat(m.Left, part.Left)
		m.Pause, m.Skew, m.Seconds = max(m.Pause, part.Pause), max(m.Skew, part.Skew), max(m.Seconds, part.Seconds)
	}
	m.Hosts = slices.Sorted(maps.Keys(said))
	for _, h := range f.All {
		if said[h.Name] && parts[h.Name] == nil {
			m.Lacking = append(m.Lacking, h.Name)
		}
	}
	return m
}

func find(all []*Snapshot, s *site.Site, id string) (*Snapshot, error) {
	for _, one := range all {
		if one.ID == id {
			return one, nil
		}
	}
	return nil, problem.New(problem.Usage, "no snapshot %q of %s", id, s.Key()).
		Try("orrery snapshot ls lists them")
}

// openSnapshots returns the snapshots that hosts have. First it finishes what a killed run left when parts
// were ready. If one host has kept its part, all hosts keep theirs. If no host has, and all were
// asked, the parts are removed as if the snapshot had never been taken. The caller must hold the
// lock.
func openSnapshots(ctx context.Context, f *apply.Fleet) ([]*Snapshot, error) {
	all, ready, err := list(ctx, f)
	if err != nil {
		return nil, err
	}
	again := false
	err = f.ForEach(func(i int, h *apply.HostClient) (err error) {
		for _, id := range ready[i] {
			kept := slices.ContainsFunc(all, func(s *Snapshot) bool { return s.ID == id })
			switch {
			case kept:
				err = errors.Join(err, h.Snapshots.Keep(ctx, id))
			case len(f.Unknown) == 0:
				err = errors.Join(err, h.Snapshots.Remove(ctx, id))
			}
		}
		return err
	})
	for _, ids := range ready {
		again = again || len(ids) > 0
	}
	if err != nil || !again {
		return all, err
	}
	all, _, err = list(ctx, f)
	return all, err
}
