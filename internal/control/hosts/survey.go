package hosts

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"orrery/internal/apply"
	"orrery/internal/apply/remote"
	"orrery/internal/host/doctor"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/text/sanitize"
)

// A State is the state of a host of a site.
type State struct {
	Host     string       `json:"host"`
	Address  string       `json:"address"`
	Answers  bool         `json:"answers"`
	Hostname string       `json:"hostname,omitempty"`
	Seconds  float64      `json:"seconds"` // round-trip time
	Skew     float64      `json:"skew"`    // seconds that its clock is ahead of this machine's clock
	Nodes    int          `json:"nodes"`   // of the site
	Running  int          `json:"running"`
	Drained  string       `json:"drained,omitempty"` // who keeps nodes of the site away, or "" if nobody does
	Lacks    doctor.Facts `json:"lacks,omitempty"`   // what nodes need and the host lacks, if checked
	Wrong    []string     `json:"wrong,omitempty"`   // other errors

	problems []error
	machine  string // identity of the machine, or "" if unknown
	keyless  bool   // the host cannot encrypt networks, although the site has encrypted ones
}

// IsFit reports whether the host is fit for nodes, as far as that was checked.
func (s *State) IsFit() bool { return s.Answers && len(s.problems) == 0 && len(s.Lacks) == 0 }

func (s *State) skew() time.Duration { return time.Duration(s.Skew * float64(time.Second)).Abs() }
func (s *State) took() time.Duration { return time.Duration(s.Seconds * float64(time.Second)) }

// addProblem records an error.
func (s *State) addProblem(err error) {
	s.problems, s.Wrong = append(s.problems, err), append(s.Wrong, err.Error())
}

// States returns the states of the hosts of the site, in its order.
func (c *Connector) States(ctx context.Context) []State { return c.survey(ctx, false).all }

// Check returns the same as States, and also checks whether the hosts are fit for nodes and whether
// each is a different machine.
func (c *Connector) Check(ctx context.Context) []State {
	v := c.survey(ctx, true)
	all, machines := v.all, make([]string, len(v.all))
	if !slices.ContainsFunc(all, func(s State) bool { return s.keyless }) {
		v.probeRoutes(ctx)
	}
	for i := range all {
		machines[i] = all[i].machine
	}
	for i := range all {
		if other := sameMachine(c.Site.Hosts, machines, i); other != nil {
			all[i].addProblem(problem.New(problem.Mistake, "it is the same machine as host %s",
				other.Name).Try("keep one of them"))
		}
		if skewTooLarge(all[i].skew(), all[i].took()) {
			all[i].addProblem(skewError(all[i].Host, time.Duration(all[i].Skew*float64(time.Second))))
		}
	}
	return all
}

// Facts returns what a host has of the things that nodes need.
func (c *Connector) Facts(ctx context.Context, name string) (doctor.Facts, error) {
	h, ok := c.Site.Host(name)
	if !ok {
		return nil, UnknownHostError(c.Site, name)
	}
	return c.inspect(ctx, *h)
}

// InstallPackages installs on a host what nodes of some engines need, and reports its progress to say. It
// returns the names of the packages.
func (c *Connector) InstallPackages(ctx context.Context, h site.Host, engines []string, say func(string)) ([]string,
	error) {
	if h.Local() {
		return c.Machine.Outfit(ctx, engines, say)
	}
	l, err := c.Link(ctx, h)
	if err != nil {
		return nil, err
	}
	return l.Outfit(ctx, engines, say)
}

// Link returns the connection to a host that is another machine. It reports to the caller if
// connecting or a later request takes long.
func (c *Connector) Link(ctx context.Context, h site.Host) (*remote.Link, error) {
	notice := func(text string) { c.Notice("%s", text) }
	defer remote.Remind(h.Name, "login", notice)()
	l, err := c.Links.Get(ctx, c.Machine, h)
	if err == nil {
		l.Notify(notice)
	}
	return l, err
}

func (c *Connector) inspect(ctx context.Context, h site.Host) (doctor.Facts, error) {
	if h.Local() {
		return c.Machine.Inspect(), nil
	}
	l, err := c.Link(ctx, h)
	if err != nil {
		return nil, err
	}
	return l.Inspect(ctx)
}

// A survey collects the states of the hosts of a site.
type survey struct {
	call *Connector
	all  []State // in the order of the site
}

func (c *Connector) survey(ctx context.Context, fit bool) *survey {
	v := &survey{c, make([]State, len(c.Site.Hosts))}
	var each sync.WaitGroup
	for i, h := range c.Site.Hosts {
		each.Go(func() { v.all[i] = v.state(ctx, h, fit) })
	}
	each.Wait()
	return v
}

func (v *survey) state(ctx context.Context, h site.Host, fit bool) State {
	s := State{Host: h.Name, Address: h.Address}
	var l *remote.Link
	if h.Local() {
		self := v.call.Machine.Self()
		s.Hostname, s.machine = self.Hostname, self.Machine
	} else {
		var err error
		if l, err = v.call.Link(ctx, h); err != nil {
			s.addProblem(err)
			return s
		}
		s.Hostname, s.machine, s.Seconds, s.Skew = l.Hostname, l.Machine, l.Took.Seconds(), l.Skew.Seconds()
	}
	s.Answers = true
	f := &apply.Fleet{}
	v.call.add(f, h, l)
	nodes, err := f.All[0].Nodes.List(ctx)
	if err != nil {
		s.addProblem(err)
	}
	if mark, err := f.All[0].State.Cordoned(ctx); err != nil {
		s.addProblem(err)
	} else if mark != nil {
		s.Drained = cmp.Or(sanitize.Line(mark.Who), "unknown")
	}
	s.Nodes = len(nodes)
	for _, n := range nodes {
		if n.State == observe.Running {
			s.Running++
		}
	}
	if fit {
		facts, err := v.call.inspect(ctx, h)
		if err != nil {
			s.addProblem(err)
		}
		s.Lacks = facts.Unmet(doctor.Required)
		if err := f.All[0].FetchPublicKey(ctx, &observe.Host{}); err != nil {
			s.addProblem(err)
			s.keyless = true
		}
	}
	return s
}
