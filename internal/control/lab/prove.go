package lab

import (
	"context"
	"os"
	"strings"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/control/here"
	"orrery/internal/engine"
	"orrery/internal/host/cgroup"
	"orrery/internal/lab/prove"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// ProveOptions say which limits are proven, and how.
type ProveOptions struct {
	Selectors []string
	Rounds    int
	Seconds   float64 // of each round
}

func (o ProveOptions) check() error {
	const maxRounds, maxSeconds = 100, 600
	if o.Rounds < 1 || o.Rounds > maxRounds {
		return problem.New(problem.Usage, "--rounds %d is not between 1 and %d", o.Rounds, maxRounds)
	}
	if !(o.Seconds >= 0.2 && o.Seconds <= maxSeconds) {
		return problem.New(problem.Usage, "--seconds %v is not between 0.2 and %d", o.Seconds, maxSeconds)
	}
	return nil
}

// Prove loads the nodes of a site that declare limits, or those that the selectors match, and reports
// whether the limits hold.
func Prove(ctx context.Context, c *control.Session, s *site.Site, o ProveOptions) (*prove.Report, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	chosen, err := control.SelectNodes(s, o.Selectors)
	if err != nil {
		return nil, err
	}
	if chosen == nil && s.Production {
		return nil, problem.New(problem.Usage, "site %s is in production, and no node is named", s.Name).
			Try("name the nodes to load: orrery lab prove NODE...")
	}
	if !prove.Any(s, chosen) {
		return nil, problem.New(problem.Usage, "no node here declares a limit that a load can prove").At(s.Name).
			Try(`declare rate in net.NETWORK, disk, or cpus, and run orrery up; see "Limits" in docs/site-file.md`)
	}
	f, seen, live, err := control.ObserveReleased(ctx, c, s)
	if err != nil {
		return nil, err
	}
	if _, err := c.AskProduction(s, "The named nodes would be loaded beyond their limits, one after the other."); err != nil {
		return nil, err
	}
	r := &prove.Report{Site: s.Key(), At: time.Now(), Rounds: o.Rounds, Seconds: o.Seconds}
	r.Host, _ = os.Hostname()
	p := &proof{site: s, report: r, options: prove.Options{Rounds: o.Rounds, Seconds: o.Seconds, Dir: c.Dirs.State,
		Begin: func(node string, l prove.Limit) { c.Notice(s.Key(), "node %s: loading it beyond %s", node, l.Title()) }}}
	err = c.RunLocked(ctx, s, f, func(j *control.JournalWriter) error {
		began := time.Now()
		if err := p.nodes(ctx, f, seen, live, chosen); err != nil {
			return err
		}
		return j.Step("prove limits", summary(r), time.Since(began))
	})
	return r, err
}

// summary returns the result for the journal.
func summary(r *prove.Report) string {
	bad := r.Count(prove.TooHigh, prove.TooLow)
	switch {
	case bad > 0:
		var names []string
		for i := range r.Rows {
			if row := &r.Rows[i]; row.Verdict == prove.TooHigh || row.Verdict == prove.TooLow {
				names = append(names, row.Node+" "+row.Name+" "+string(row.Verdict))
			}
		}
		return strings.Join(names[:min(len(names), 5)], ", ")
	case r.Count(prove.Holds) == 0:
		return "nothing can be told here"
	default:
		return "done"
	}
}

// A proof is a run of Prove.
type proof struct {
	site    *site.Site
	report  *prove.Report
	options prove.Options
}

// nodes proves the limits of the chosen nodes.
func (p *proof) nodes(ctx context.Context, f *apply.Fleet, seen []observe.Host, live *site.Site,
	chosen map[string]bool) error {
	builder := spec.NewBuilder(live)
	targets := map[string]*prove.Target{}
	missing := map[string]string{}
	var here []*prove.Target
	var specs []*spec.Node
	for i := range live.Nodes {
		n, err := builder.Node(&live.Nodes[i])
		if err != nil {
			return err
		}
		specs = append(specs, n)
		t, why := target(f, seen, n)
		if t == nil {
			missing[n.Name] = why
			continue
		}
		targets[n.Name] = t
		if chosen == nil || chosen[n.Name] { // no other node is loaded, not even as a neighbour
			here = append(here, t)
		}
	}
	var why string
	for _, n := range specs {
		limits := prove.Declared(n)
		if len(limits) == 0 || chosen != nil && !chosen[n.Name] {
			continue
		}
		t := targets[n.Name]
		if t == nil {
			why = "node " + n.Name + ": " + missing[n.Name]
			p.report.Rows = append(p.report.Rows, prove.Untell(n.Name, limits, missing[n.Name])...)
			continue
		}
		rows, err := prove.Node(ctx, p.options, here, t, limits)
		p.report.Rows = append(p.report.Rows, rows...)
		if err != nil {
			return err
		}
	}
	for i := range p.report.Rows {
		if _, absent := missing[p.report.Rows[i].Node]; !absent {
			return nil
		}
	}
	return problem.New(problem.Failed, "no limit can be proven: %s", why).At(p.site.Name).
		Try("orrery up starts nodes; nodes of another host are proven on that host, by the same command there")
}

// target returns a node that runs on this machine, or why there is none.
func target(f *apply.Fleet, seen []observe.Host, n *spec.Node) (t *prove.Target, why string) {
	for i := range seen {
		for k := range seen[i].Nodes {
			o := &seen[i].Nodes[k]
			if o.Name != n.Name || o.ID != n.ID {
				continue
			}
			if o.State != observe.Running {
				return nil, "the node is " + string(o.State)
			}
			near, err := here.AsLocal(f.All[i])
			if err != nil {
				return nil, "the node runs on host " + seen[i].Name + ", where only that host itself can load it"
			}
			return newTarget(near.ByName()[o.Engine], n, o), ""
		}
	}
	return nil, "the node does not run"
}

// newTarget returns what the engine of a running node knows of it.
func newTarget(e engine.Engine, n *spec.Node, o *observe.Node) *prove.Target {
	t := &prove.Target{Name: n.Name, NICs: n.NICs, Limits: n.Limits}
	ref := engine.RefOf(&o.Node)
	if g, ok := e.(engine.CgroupProvider); ok {
		t.Group, t.Grouped = cgroup.Named(g.Cgroup(ref)), true
	}
	if s, ok := e.(engine.NetNamespacer); ok {
		t.NetSpace = s.NetNamespace(ref)
	}
	return t
}
