// Package roster adds, drains and removes hosts of a site, and balances nodes between hosts.
package roster

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/control/hosts"
	"orrery/internal/host/doctor"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/sitefile"
	"orrery/internal/text/humanize"
)

// Added describes a host that was added to a site.
type Added struct {
	Host      string      `json:"host"`
	Address   string      `json:"address"`
	Installed []string    `json:"installed"` // names of packages
	Written   bool        `json:"written"`   // the site file was changed; otherwise the user must insert Block
	Block     string      `json:"block"`     // of the site file
	State     hosts.State `json:"state"`
}

// Add makes a machine a host of a site. It connects to the machine, installs what nodes need,
// checks the machine like `host check`, and adds it to the site file. After that, the machine has
// nothing of the site, and of Orrery only the program. If Add is called again, it does only what is
// left to do.
func Add(ctx context.Context, c *control.Session, name, address string) (*Added, error) {
	s, err := c.Load()
	if err != nil {
		return nil, err
	}
	if s.Twin != "" {
		return nil, problem.New(problem.Usage, "%s is a twin, which uses the hosts of its site", s.Key()).
			Try("omit --twin")
	}
	dir, err := c.AbsDirectory()
	if err != nil {
		return nil, err
	}
	original, added := s, &Added{Host: name, Address: address, Installed: []string{}}
	var file *sitefile.Edit
	switch h, ok := s.Host(name); {
	case ok && h.Address != address:
		return nil, problem.New(problem.Mistake, "host %s is at %s in the site file, not at %s", name, h.Address,
			address).At(sitefile.Name).
			Try("give the new host another name; or, if it is the same machine, change its address in the site file")
	case ok:
		added.Written = true
	default:
		if file, err = sitefile.AddHost(dir, name, address); err != nil {
			return nil, err
		}
		s, added.Block = file.Site, file.Block
	}
	if err := c.CheckAllowedOn(s); err != nil {
		return nil, err
	}
	if file != nil {
		if err := trustOwnReleases(ctx, c, original); problem.Is(err, problem.Unable) {
			// then the user must accept each release: orrery release trust
			c.Watcher.Event(control.Event{Kind: control.Trouble, Site: s.Key(), Text: err.Error(), Err: err})
		} else if err != nil {
			return nil, err
		}
	}
	j := addOp{Session: c, site: s, name: name, call: c.Connector(s)}
	if err := j.reach(ctx, file != nil); err != nil {
		return nil, err
	}
	if added.Installed, err = j.installPackages(ctx); err != nil {
		return nil, err
	}
	if added.State, err = j.check(ctx); err != nil {
		return nil, err
	}
	if file == nil {
		return added, nil
	}
	if err := file.Write(); problem.Is(err, problem.Unable) {
		c.Watcher.Event(control.Event{Kind: control.Trouble, Site: s.Key(), Text: err.Error(), Err: err})
		return added, nil
	} else if err != nil {
		return nil, err
	}
	added.Written = true
	return added, nil
}

// trustOwnReleases adds to releases.lock the releases that this machine stores of a site and its twins, if
// the site had no other host.
func trustOwnReleases(ctx context.Context, c *control.Session, s *site.Site) error {
	all := []*site.Site{s}
	for _, t := range c.Register().Twins() {
		if t.Site == s.Name {
			all = append(all, &site.Site{Name: s.Name, Twin: t.Options.Name, Hosts: s.Hosts})
		}
	}
	for _, one := range all {
		if err := c.Connector(one).Releases(nil).Vouch(ctx); err != nil {
			return err
		}
	}
	return nil
}

// An addOp adds a host to a site.
type addOp struct {
	Session *control.Session
	site    *site.Site
	name    string
	call    *hosts.Connector // including the new host
}

func (j *addOp) say(format string, args ...any) {
	j.Session.Watcher.Event(control.Event{Kind: control.Progress, Site: j.site.Key(), Text: fmt.Sprintf(format, args...)})
}

// reach connects to the new host and to all others, whose records must agree. A host that is new to
// the site must not have nodes of another site of that name.
func (j *addOp) reach(ctx context.Context, fresh bool) error {
	j.say("connecting to host %s", j.name)
	f, silent, err := j.Session.ReachableHosts(ctx, j.site)
	if err == nil {
		err = silent
	}
	if err != nil {
		return err
	}
	h, ok := f.Host(j.name)
	if !ok {
		return problem.New(problem.Usage, "host %s is left out, and cannot be added", j.name).Try("omit --without")
	}
	if !fresh {
		return nil
	}
	nodes, err := h.Nodes.List(ctx)
	if err != nil {
		return err
	}
	if len(nodes) > 0 {
		var names []string
		for i := range nodes {
			names = append(names, nodes[i].Name)
		}
		return problem.New(problem.Surprise, "host %s already has nodes of a site called %s: %s", j.name, j.site.Key(),
			humanize.List(names, 12)).
			Try("if they belong to another site, rename one of the two; if they belong to this one, add host %s to site.toml by hand: orrery plan then shows what happens to them",
				j.name)
	}
	_, err = f.Records().Read(ctx) // fails if hosts disagree about what is live
	return err
}

// installPackages installs what is missing.
func (j *addOp) installPackages(ctx context.Context) ([]string, error) {
	var engines []string
	for i := range j.site.Nodes {
		if e := j.site.Nodes[i].Engine; !slices.Contains(engines, e) {
			engines = append(engines, e)
		}
	}
	slices.Sort(engines)
	h, _ := j.site.Host(j.name)
	installed, err := j.call.InstallPackages(ctx, *h, engines, func(text string) { j.say("%s: %s", j.name, text) })
	if installed == nil {
		installed = []string{}
	}
	return installed, err
}

// check checks the hosts. The new host must be fit for nodes. Problems of other hosts are reported,
// and prevent joining only if they also concern the new host.
func (j *addOp) check(ctx context.Context) (hosts.State, error) {
	j.say("checking host %s, and whether the hosts reach one another", j.name)
	all := j.Session.Connector(withNodeOnEachHost(j.site)).Check(ctx)
	i := slices.IndexFunc(all, func(s hosts.State) bool { return s.Host == j.name })
	state := all[i]
	for k := range all {
		for _, text := range all[k].Wrong {
			if k != i && mentionsHost(text, j.name) { // only one of two hosts reports that they cannot reach each other
				state.Wrong = append(state.Wrong, text)
			}
		}
	}
	if state.IsFit() && len(state.Wrong) == 0 {
		return state, nil
	}
	return state, problem.New(problem.Unable, "host %s cannot run nodes: %s", j.name, problemText(&state)).
		Try("fix this, and run the same command again: it continues from the current state")
}

// withNodeOnEachHost returns the site with an additional node on each host that is on all networks between
// hosts. The check then tests the ways between all hosts, whatever nodes they have. The result is
// only for this check.
func withNodeOnEachHost(s *site.Site) *site.Site {
	all := *s
	all.Nodes = slices.Clone(s.Nodes)
	for _, h := range s.Hosts {
		n := site.Node{Name: "any node of " + h.Name, Host: h.Name, Engine: site.LXC}
		for _, network := range s.Networks {
			if site.KindOf(network.Kind).Bridged {
				n.NICs = append(n.NICs, site.NIC{Network: network.Name})
			}
		}
		all.Nodes = append(all.Nodes, n)
	}
	return &all
}

// mentionsHost reports whether a text contains the name of a host as a word.
func mentionsHost(text, name string) bool {
	return slices.Contains(strings.FieldsFunc(text, func(r rune) bool { return strings.ContainsRune(" ,;:()[]", r) }),
		name)
}

// problemText returns the problems of a host as text.
func problemText(s *hosts.State) string {
	all := slices.Clone(s.Wrong)
	for _, f := range s.Lacks {
		if f.Level == doctor.Required {
			all = append(all, fmt.Sprintf("%s: %s (%s)", f.Name, f.Value, f.Fix))
		}
	}
	return strings.Join(all, "; ")
}

// withOnlyHost returns one host of a site, with all others left out.
func withOnlyHost(ctx context.Context, c *control.Session, s *site.Site, name string) (*apply.HostClient,
	*apply.Fleet, error) {
	if err := checkKnown(s, name); err != nil {
		return nil, nil, err
	}
	alone := *c
	for _, other := range hosts.Names(s) {
		if other != name && !slices.Contains(alone.Without, other) {
			alone.Without = append(slices.Clone(alone.Without), other)
		}
	}
	f, err := alone.Hosts(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	h, ok := f.Host(name)
	if !ok {
		return nil, nil, problem.New(problem.Usage, "host %s is left out", name).Try("omit --without")
	}
	return h, f, nil
}

// checkKnown returns an error if the site does not have the host.
func checkKnown(s *site.Site, name string) error {
	if _, ok := s.Host(name); !ok {
		return hosts.UnknownHostError(s, name)
	}
	return nil
}

// observedHost returns one of the observed hosts.
func observedHost(seen []observe.Host, name string) *observe.Host {
	return &seen[slices.IndexFunc(seen, func(h observe.Host) bool { return h.Name == name })]
}
