package nodes

import (
	"context"
	"errors"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/journal"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
)

// A History is the content of a site's journals on its hosts.
type History struct {
	Entries []journal.Entry  // the oldest first; if the site has several hosts, each entry names its host
	Damaged map[string][]int // numbers of lines that cannot be read, by host
	Silent  error            // why the journals of some hosts are missing
}

// ReadHistory reads the journals of a site from the start of the last runs, or completely if runs is 0.
func ReadHistory(ctx context.Context, c *control.Session, s *site.Site, runs int) (*History, error) {
	if err := c.CheckAllowedOn(s); err != nil {
		return nil, err
	}
	f, silent, err := c.ReachableHosts(ctx, s)
	if err != nil {
		return nil, err
	}
	names, all, damaged, wrong := make([]string, len(f.All)), make([][]journal.Entry, len(f.All)),
		make([][]int, len(f.All)), make([]error, len(f.All))
	_ = f.ForEach(func(i int, h *apply.HostClient) error {
		names[i] = h.Name
		all[i], damaged[i], wrong[i] = h.Runs.ReadJournal(ctx, runs)
		return nil
	})
	known := &History{Damaged: map[string][]int{}, Silent: errors.Join(silent, errors.Join(wrong...))}
	for i, lines := range damaged {
		if len(lines) > 0 {
			known.Damaged[names[i]] = lines
		}
	}
	if len(s.Hosts) > 1 {
		all = [][]journal.Entry{journal.LastRuns(journal.Merge(names, all), runs)}
	}
	known.Entries = all[0]
	if len(c.Without) > 0 {
		c.Watcher.Event(control.Event{Kind: control.Notice, Site: s.Key(),
			Text: "the journal of host " + humanize.List(c.Without, 12) + " is left out"})
	}
	return known, nil
}
