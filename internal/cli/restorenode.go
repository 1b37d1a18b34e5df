package cli

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"orrery/internal/backup"
	"orrery/internal/backup/vault"
	"orrery/internal/control"
	"orrery/internal/control/snapshots"
	"orrery/internal/engine/nodedir"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// replaceNode puts one node of the site back as it was backed up, in the place of what it is now: what the backup has of it becomes a snapshot, and that is
// put back. The rest of the site goes on.
func (a *app) replaceNode(c *cobra.Command, text string, o restoreOptions) error {
	for _, flag := range []string{"dir", "file", "to", "trust-layers", "yes-paths", "secrets-identity", "secrets-passphrase-file", "parallel"} {
		if c.Flags().Changed(flag) {
			return problem.New(problem.Usage, "--%s has nothing to do with --node and --replace, which put one node back in its place", flag).Try("leave it out")
		}
	}
	v, id, err := vault.Open(text)
	if err != nil {
		return err
	}
	defer v.Close() //nolint:errcheck // it was only read
	id, m, err := vault.Choose(v, id)
	if err != nil {
		return err
	}
	s, h, _, err := a.Target(nil)
	if err != nil {
		return err
	}
	if m.Site != s.Name {
		return problem.New(problem.Refused, "this is a backup of site %s, and not of %s; nothing was done", m.Site, s.Name).At(v.Where()).Try("name another backup, or another site with -C")
	}
	return a.Locked(c.Context(), s, h, func(account *control.Account) error {
		here, err := a.nodeHere(s, o.node)
		if err != nil {
			return err
		}
		why := fmt.Sprintf("What node %s and its volumes have written since %s would be lost.", o.node, m.Time.Local().Format(time.DateTime))
		if _, err := a.Asker.Ask(control.Question{About: control.Replace, Site: s.Name, Why: why}); err != nil {
			return err
		}
		if _, err := a.AskProduction(s, why); err != nil {
			return err
		}
		shown := newMeter(a.err, "restore")
		p := &backup.Pick{From: v, Manifest: m, Saw: shown.Add, Lacked: map[string]int{}}
		taken, err := p.Snapshot(c.Context(), a.Dirs, s.Key(), o.node+"-"+id, here, h.Engines[here.Engine])
		shown.Close()
		if err != nil {
			return err
		}
		a.tellLacked(p.Lacked)
		done, err := snapshots.Once(c.Context(), &a.Session, account, s, h, taken, fmt.Sprintf("node %s in %s", o.node, backupName(v, id)))
		if err == nil {
			a.tellPutBack(s, done)
		}
		return err
	})
}

// nodeHere gives what is on record of a node that is live.
func (a *app) nodeHere(s *site.Site, name string) (*nodedir.Record, error) {
	all, err := nodedir.All(a.Dirs, s.Key())
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
	return nil, problem.New(problem.Failed, "node %s is not on this host, so nothing can be put in its place", name).Try("orrery up %s makes it; then run the same command again", name)
}
