// Package routines does with a whole site what its site file schedules: backups, snapshots, and a
// watch of its nodes, hosts and disks.
package routines

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/control/backups"
	"orrery/internal/control/snapshots"
	"orrery/internal/control/status"
	"orrery/internal/control/unattended"
	"orrery/internal/host/filesystem"
	"orrery/internal/observe"
	"orrery/internal/observe/routine"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/event"
	"orrery/internal/site/sitefile"
	"orrery/internal/text/sanitize"
)

// Work is the Routines of a session.
type Work struct{}

// Do takes a backup or a snapshot as declared, and returns its name.
func (Work) Do(ctx context.Context, c *control.Session, s *site.Site, name string) (made string, err error) {
	if name == routine.Snapshot {
		taken, err := snapshots.TakeDeclared(ctx, c, s)
		if taken == nil {
			return "", err
		}
		return taken.ID, err
	}
	taken, err := backups.TakeDeclared(ctx, c, s)
	if taken == nil {
		return "", err
	}
	return taken.Title, err
}

// BackUp takes the backup that the site file declares, and records it as if it had been scheduled.
func BackUp(ctx context.Context, c *control.Session) (taken *backups.Taken, err error) {
	s, err := c.Load()
	if err != nil {
		return nil, err
	}
	if s.Backup.To == "" {
		return nil, problem.New(problem.Usage, "the site file of %s does not say where backups go", s.Key()).
			At(filepath.Join(c.SiteDir, sitefile.Name)).
			Try("name a file or directory, or write [backup] to = \"/srv/backups/%s\"", s.Name)
	}
	f, err := c.Hosts(ctx, s)
	if err != nil {
		return nil, err
	}
	_, err = control.Attempt(ctx, c, s, f, routine.Backup, func() (string, error) {
		if taken, err = backups.TakeDeclared(ctx, c, s); taken == nil {
			return "", err
		}
		return taken.Title, err
	})
	return taken, err
}

// Look returns what is wrong with nodes, hosts and disks.
func (Work) Look(ctx context.Context, c *control.Session, s *site.Site) (found []unattended.Finding, err error) {
	all, err := status.Read(ctx, c, s, nil)
	if err != nil {
		return nil, err
	}
	if err := all.Probe(ctx); err != nil {
		return nil, err
	}
	for i := range all.Nodes {
		if f, wrong := ofNode(&all.Nodes[i]); wrong {
			found = append(found, f)
		}
	}
	for _, name := range all.Unknown() {
		found = append(found, unattended.Finding{Event: event.HostSilent, Subject: "host " + name,
			Why: "it does not answer"})
	}
	disks := make([][]unattended.Finding, len(all.Fleet.All))
	if err := all.Fleet.ForEach(func(i int, h *apply.HostClient) error {
		seen, err := h.State.Observe(ctx, nil)
		disks[i] = ofDisk("disk of host "+h.Name, seen.Disk)
		return err
	}); err != nil {
		return nil, err
	}
	found = append(found, slices.Concat(disks...)...)
	if to := s.Backup.To; to != "" {
		found = append(found, ofDisk("disk of backups in "+to, diskOf(ctx, to))...)
	}
	return found, nil
}

// ofNode returns what is wrong with a node.
func ofNode(n *status.Node) (f unattended.Finding, wrong bool) {
	if n.Quarantine || n.Undeclared || n.IsGood() || n.Health == status.Drifted {
		return f, false
	}
	f = unattended.Finding{Event: event.NodeUnhealthy, Subject: "node " + n.Node, Node: n.Node, Why: n.State,
		Doubtful: n.State == status.Unknown}
	switch {
	case n.Detail != "":
		f.Why = sanitize.Line(n.Detail)
	case n.Failure != nil:
		f.Why = sanitize.Line(n.Failure.Found)
	case n.State == string(observe.Running):
		f.Why = n.Health
	}
	for _, d := range n.Drift {
		if d.Unhealthy() {
			f.Why = sanitize.Line(d.String())
		}
	}
	return f, true
}

// A disk is full at the first share of its size. Between the two, it stays what it was.
const (
	fullShare = 0.90
	roomShare = 0.85
)

// ofDisk returns that a disk is full, or may still be.
func ofDisk(subject string, d *observe.Disk) []unattended.Finding {
	if d == nil || d.Total <= 0 {
		return nil
	}
	used := 1 - float64(d.Free)/float64(d.Total)
	if used < roomShare {
		return nil
	}
	return []unattended.Finding{{Event: event.DiskFull, Subject: subject, Doubtful: used < fullShare,
		Why: fmt.Sprintf("%.0f %% of it are in use", used*100)}}
}

// diskTimeout is how long the server of backups may take to report how full it is.
const diskTimeout = 5 * time.Second

// diskOf returns the file system of a directory, or of the one that it will be in, or nil if unknown.
func diskOf(ctx context.Context, dir string) *observe.Disk {
	ctx, stop := context.WithTimeout(ctx, diskTimeout)
	defer stop()
	u, ok := filesystem.ReadNearest(ctx, dir)
	if !ok {
		return nil
	}
	return &observe.Disk{Total: u.Size(), Free: u.Free}
}
