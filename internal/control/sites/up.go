package sites

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"

	"orrery/internal/apply"
	"orrery/internal/backup"
	"orrery/internal/control"
	"orrery/internal/control/fill"
	"orrery/internal/control/hosts"
	"orrery/internal/control/overdue"
	"orrery/internal/control/releases"
	"orrery/internal/control/secrets"
	"orrery/internal/control/unattended"
	"orrery/internal/image"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/brief"
	"orrery/internal/plan/diff"
	"orrery/internal/plan/orphan"
	"orrery/internal/plan/release"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
	"orrery/internal/volume"
)

// UpOptions say how to bring up a site.
type UpOptions struct {
	Undo     bool         // undo all steps if one fails
	Probe    bool         // look into running nodes, and repair what has drifted
	Parallel int          // maximum number of concurrent steps, or 0 for DefaultParallel
	Batch    site.Batch   // how many running nodes are disturbed at once, or zero to use the groups' settings
	rotate   *site.Secret // the secret that is rotated, or nil
	rotateOn string       // the only node on which it is rotated, or "" for all
	Backup   string       // the backup whose parts all hosts have staged for a restore, or ""
}

// Up brings up the selected nodes, or all nodes of a site. It continues the trial of a release,
// even if not all of the site comes up. It returns nil if there was nothing to do.
//
// Up first completes a restore that was interrupted. If that brings the site up from another
// directory, Up returns that directory as elsewhere, and does nothing else.
func Up(ctx context.Context, c *control.Session, s *site.Site, selectors []string, o UpOptions) (r *apply.Result,
	elsewhere string, err error) {
	if elsewhere = restoredFrom(c, s); elsewhere == "" || o.Backup != "" {
		r, err = up(ctx, c, s, selectors, o)
		return r, "", err
	}
	b := *c
	b.SiteDir = elsewhere
	if s, err = b.Load(); err == nil {
		_, err = up(ctx, &b, s, nil, o)
	}
	return nil, elsewhere, err
}

func up(ctx context.Context, c *control.Session, s *site.Site, selectors []string, o UpOptions) (r *apply.Result,
	err error) {
	f, chosen, err := control.SelectedHosts(ctx, c, s, selectors)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, overdue.ResumeTrial(ctx, c, s)) }()
	if err := fill.Once(ctx, c, s, false); err != nil {
		return nil, err
	}
	j := &control.Job{
		Session: c, Site: s, Base: s, Hosts: f, Undo: o.Undo, Parallel: o.Parallel, Restores: true, Backup: o.Backup,
		Do: &upOp{session: c, site: s, hosts: f, nodes: chosen, options: o},
	}
	if r, err = j.Run(ctx); err != nil {
		return r, err
	}
	if err := control.RefreshDeclaration(c, s); err != nil {
		return r, err
	}
	return r, saveSchedules(ctx, c, s, f)
}

// A upOp changes the hosts so that they match the declared site.
type upOp struct {
	control.Plain
	session *control.Session
	site    *site.Site
	hosts   *apply.Fleet
	nodes   map[string]bool // nil for all nodes
	options UpOptions
	rotates *rotations // of the last plan
}

func (u *upOp) Plan(ctx context.Context, seen []observe.Host) (*plan.Plan, error) {
	if u.options.Probe {
		if err := detectDrift(ctx, u.hosts, seen, u.nodes); err != nil {
			return nil, err
		}
	}
	r, err := planRotations(ctx, u.session, u.site, u.hosts, seen, u.options.rotate)
	if err != nil {
		return nil, err
	}
	nodes := u.nodes
	if u.options.rotate != nil {
		if nodes, err = r.add(u.hosts, u.site, u.options.rotate, u.options.rotateOn); err != nil {
			return nil, err
		}
	}
	u.rotates = r
	p, err := planUp(u.session, u.site, seen, plan.Goal{Nodes: withUnrestored(u.site, seen, nodes), Batch: u.options.Batch,
		Releases: u.hosts.Views().Releases(), Raised: r.raised})
	switch {
	case err != nil:
		return nil, err
	case p.Empty(): // else Begin and Commit do this
		return p, u.settleSecrets(ctx, seen)
	}
	p.Warnings = append(p.Warnings, r.warnings(u.hosts, p)...)
	return p, nil
}

func (u *upOp) Confirm(c *control.Session, p *plan.Plan) (asked bool, err error) {
	reportOrphans(c, u.site, p.Orphans)
	lines := brief.Lines(p)
	switch {
	case u.options.rotate != nil:
		what := u.options.rotate.Name
		if u.options.rotateOn != "" {
			what += " of node " + u.options.rotateOn
		}
		return c.AskProduction(u.site, "This would rotate secret "+what+" and disturb it:"+brief.Text(lines))
	case u.site.Production && len(p.DisturbedNodes()) > 0:
		return c.AskProduction(u.site, "This would disturb it:"+brief.Text(lines))
	case u.site.Production || u.options.Backup != "" || len(brief.Losses(lines)) == 0:
		return false, nil // the caller of a restore has agreed to lose the present state
	}
	return c.Confirmer.Ask(control.Question{About: control.Loss, Site: u.site.Name, Plain: true,
		Why: u.site.Key() + " would lose data:" + brief.Text(lines)})
}

func (u *upOp) Begin(ctx context.Context) error {
	if err := control.MarkUp(u.session, u.site); err != nil {
		return err
	}
	if u.rotates == nil { // a restore begins before there is a plan
		return nil
	}
	return u.rotates.begin(ctx, u.hosts, u.site)
}

// settleSecrets records the files of secrets and removes the secrets of nodes that hosts no longer have, if there
// is nothing else to do.
func (u *upOp) settleSecrets(ctx context.Context, seen []observe.Host) error {
	if err := u.rotates.files.Store(); err != nil || u.nodes != nil || u.options.rotate != nil {
		return err
	}
	return u.hosts.SecretKeeper().Forget(ctx, seen)
}

// Commit removes the secrets of nodes that hosts no longer have.
func (u *upOp) Commit(ctx context.Context) error {
	if u.nodes != nil || u.options.rotate != nil {
		return nil
	}
	return secrets.Forget(ctx, u.session, u.hosts)
}

// planUp plans the changes that make the hosts match the declared site. It reports what differs
// because of a live release.
func planUp(c *control.Session, s *site.Site, seen []observe.Host, goal plan.Goal) (*plan.Plan, error) {
	p, err := plan.Up(s, seen, goal)
	if err != nil {
		return nil, err
	}
	if err := hosts.CheckPlannedDisks(p); err != nil {
		return nil, err
	}
	p.Warnings = append(p.Warnings, release.ReturningReleases(s, seen, goal)...)
	p.Warnings = append(p.Warnings, release.PendingEdits(s, seen, goal, p.Homes,
		func(number int) (*site.Site, error) { return releases.DeclaredRelease(c, s, number) })...)
	return p, hosts.CheckColocated(s, seen, p)
}

// PreviewOptions say what to plan.
type PreviewOptions struct {
	Probe         bool       // look into running nodes
	Batch         site.Batch // how many running nodes are disturbed at once, or zero to use the groups' settings
	Down, Volumes bool       // preview Down instead of Up; with the volumes
}

// Preview returns the plan that Up or Down would carry out.
func Preview(ctx context.Context, c *control.Session, selectors []string, o PreviewOptions) (*plan.Plan, error) {
	v, err := preview(ctx, c, selectors, o)
	if err != nil {
		return nil, err
	}
	return v.plan, nil
}

// Changes returns the plan of Preview, and how it changes nodes and networks.
func Changes(ctx context.Context, c *control.Session, selectors []string, o PreviewOptions) (*plan.Plan,
	[]diff.Change, error) {
	v, err := preview(ctx, c, selectors, o)
	if err != nil {
		return nil, nil, err
	}
	return v.plan, releases.Sources(c, v.site, v.fleet, v.seen, v.plan.Homes).Plan(v.plan), nil
}

// A view is a plan with what it was made from.
type view struct {
	site  *site.Site
	fleet *apply.Fleet
	seen  []observe.Host
	plan  *plan.Plan
}

func preview(ctx context.Context, c *control.Session, selectors []string, o PreviewOptions) (*view, error) {
	s, err := c.Load()
	if err != nil {
		return nil, err
	}
	if unused := s.UnusedRoles(); len(unused) > 0 && !o.Down && s.Twin == "" {
		c.Notice(s.Key(), "%s: %s", humanize.Plural(len(unused), "unused role"), humanize.List(unused, 12))
	}
	f, chosen, err := control.SelectedHosts(ctx, c, s, selectors)
	if err != nil {
		return nil, err
	}
	var under error
	var both sync.WaitGroup // ask a remote host both questions at once
	both.Go(func() { under = overdue.ReportPendingOn(ctx, c, s, f) })
	hosts, err := c.Observe(ctx, f)
	both.Wait()
	if under != nil {
		return nil, under // up continues from the current state once that is settled
	}
	if err != nil {
		return nil, err
	}
	if o.Probe {
		if err := detectDrift(ctx, f, hosts, chosen); err != nil {
			return nil, err
		}
	}
	v := &view{site: s, fleet: f, seen: hosts}
	goal := plan.Goal{Nodes: chosen, Volumes: o.Volumes, Batch: o.Batch, Releases: f.Views().Releases()}
	if o.Down {
		v.plan, err = release.Down(s, hosts, goal)
		return v, f.Views().Explain(err)
	}
	rotates, err := planRotations(ctx, c, s, f, hosts, nil)
	if err != nil {
		return nil, err
	}
	goal.Raised = rotates.raised
	if v.plan, err = planUp(c, s, hosts, goal); err != nil {
		return v, f.Views().Explain(err)
	}
	v.plan.Warnings = append(v.plan.Warnings, rotates.warnings(f, v.plan)...)
	return v, nil
}

// reportOrphans reports the volumes that no node uses any more.
func reportOrphans(c *control.Session, s *site.Site, orphans []orphan.Orphan) {
	for _, o := range orphans {
		if o.IsUnclaimed() {
			c.Watcher.Event(control.Event{Kind: control.Orphan, Site: s.Key(), Text: o.String()})
		}
	}
}

// withUnrestored adds to the chosen nodes those whose data still waits to be restored from a backup.
// Nil means all nodes, and stays nil.
func withUnrestored(s *site.Site, seen []observe.Host, chosen map[string]bool) map[string]bool {
	if chosen == nil {
		return nil
	}
	all := maps.Clone(chosen)
	for i := range seen {
		for _, name := range seen[i].Restoring.PendingNodes() {
			if _, declared := s.Node(name); declared {
				all[name] = true
			}
		}
	}
	return all
}

// restoredFrom returns the site directory of a restore that was interrupted, if it is not the
// directory of the session. Otherwise it returns "".
func restoredFrom(c *control.Session, s *site.Site) string {
	m, up := c.Register().Up(s.Key())
	if dir, err := c.AbsDirectory(); err != nil || !up || dir == m.Dir || !m.Exists() {
		return ""
	}
	part, err := backup.OpenPart(c.Dirs, image.Open(c.Dirs.State), s.Key())
	if err != nil || part == nil || !part.AllStaged() || part.IsComplete() {
		return ""
	}
	return m.Dir
}

// saveSchedules makes the hosts do what the site file schedules: mirror volumes, take backups and
// snapshots, and watch.
func saveSchedules(ctx context.Context, c *control.Session, s *site.Site, f *apply.Fleet) error {
	mirrors, err := volume.Mirrors(c.Dirs, s)
	if err != nil || s.Twin != "" {
		return err
	}
	if err := unattended.SaveMirrorPlans(ctx, c.Connector(s), f, mirrors); err != nil {
		return err
	}
	return unattended.SaveRoutinePlans(ctx, c.Connector(s), f, false)
}

// detectDrift looks into the running nodes, and adds to their states what has drifted.
func detectDrift(ctx context.Context, f *apply.Fleet, seen []observe.Host, chosen map[string]bool) error {
	return f.ForEach(func(_ int, h *apply.HostClient) error {
		i := slices.IndexFunc(seen, func(o observe.Host) bool { return o.Name == h.Name })
		if i < 0 {
			return fmt.Errorf("host %s was not observed", h.Name)
		}
		return h.DetectDrift(ctx, seen[i].Nodes, chosen)
	})
}
