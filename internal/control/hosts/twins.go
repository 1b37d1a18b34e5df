package hosts

import (
	"context"
	"errors"
	"maps"
	"reflect"
	"slices"
	"strings"

	"orrery/internal/apply"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/twin"
	"orrery/internal/text/humanize"
)

// A Twin is a twin of a site, as recorded on its hosts.
type Twin struct {
	twin.Record
	On      []string `json:"on,omitempty"` // the hosts that have part of it, or none if it is on this one
	Nodes   int      `json:"nodes"`
	Running int      `json:"running"`

	apart error // hosts have different records of the twin, or nil
}

// ForSite returns the call for another site on the same hosts: a twin, or the original of a twin.
func (c *Connector) ForSite(s *site.Site) *Connector {
	b := *c
	b.Site = s
	return &b
}

// Twins are the twins of a site.
type Twins struct{ call *Connector }

// Twins returns the twins of the site.
func (c *Connector) Twins() Twins { return Twins{c} }

// CheckProgram returns an error if only the hosts' records name the program that fills the volumes of a
// twin.
func (t Twins) CheckProgram(r *twin.Record) error { return t.call.scope().checkProgram(r) }

// All returns the twins of the site that are on hosts that answer, sorted by name. Silent is the
// error of the hosts that do not answer.
func (t Twins) All(ctx context.Context) (all []*Twin, silent, err error) {
	f, silent, err := t.call.ConnectWithoutReleases(ctx)
	if err != nil {
		return nil, nil, err
	}
	records := make([][]twin.Record, len(f.All))
	if err := f.ForEach(func(i int, h *apply.HostClient) (err error) {
		records[i], err = h.Twins.List(ctx)
		return err
	}); err != nil {
		return nil, nil, err
	}
	known := map[string]*Twin{}
	for i, h := range f.All {
		for _, r := range records[i] {
			if r.Site != t.call.Site.Name || twin.ValidName(r.Options.Name) != nil {
				continue // a twin of another site, or a record that Orrery did not write
			}
			one := known[r.Options.Name]
			if one == nil {
				one = &Twin{Record: r}
				known[r.Options.Name] = one
			}
			if !sameRecord(one.Record, r) {
				one.apart = problem.New(problem.Surprise, "hosts %s and %s have different records of twin %s", one.On[0], h.Label,
					r.Options.Name).At(r.Key()).
					Try("run orrery twin destroy %s and create the twin again", r.Options.Name)
			}
			one.Filled = one.Filled && r.Filled
			if h.Label != "" {
				one.On = append(one.On, h.Label)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(known)) {
		all = append(all, known[name])
	}
	return all, silent, nil
}

// sameRecord reports whether two hosts' records of a twin are the same.
func sameRecord(a, b twin.Record) bool {
	a.Filled, b.Filled = false, false
	return a.Created.Equal(b.Created) && a.Expires.Equal(b.Expires) && a.Dir == b.Dir && a.Volumes == b.Volumes &&
		reflect.DeepEqual(a.Options, b.Options)
}

// Count counts the nodes of a twin on hosts that answer.
func (t Twins) Count(ctx context.Context, of *Twin) error {
	f, _, err := t.call.ForSite(t.site(of.Options.Name)).ConnectWithoutReleases(ctx)
	if err != nil {
		return err
	}
	all := make([][]observe.Node, len(f.All))
	err = f.ForEach(func(i int, h *apply.HostClient) (err error) {
		all[i], err = h.Nodes.List(ctx)
		return err
	})
	for _, n := range slices.Concat(all...) {
		of.Nodes++
		if n.State == observe.Running {
			of.Running++
		}
	}
	return err
}

// site returns the part of a twin's site that is needed to destroy the twin.
func (t Twins) site(name string) *site.Site {
	return &site.Site{Name: t.call.Site.Name, Twin: name, Hosts: t.call.Site.Hosts}
}

// Find returns a twin of the site. It returns an error if there is none, or if hosts have different
// records of it.
func (t Twins) Find(ctx context.Context, name string) (*Twin, error) {
	all, silent, err := t.All(ctx)
	if err != nil {
		return nil, err
	}
	var names []string
	for _, one := range all {
		if one.Options.Name == name {
			return one, one.apart
		}
		names = append(names, one.Options.Name)
	}
	p := problem.New(problem.Mistake, "site %s has no twin %q", t.call.Site.Name, name)
	switch near := problem.Suggest(name, names); {
	case silent != nil:
		return nil, errors.Join(problem.New(problem.Failed, "no host of site %s that answers has a twin %q",
			t.call.Site.Name, name).Try("check why the other hosts do not answer"), silent)
	case near != "":
		return nil, p.Try("did you mean %s?", near)
	case len(names) > 0:
		return nil, p.Try("existing twins: %s", humanize.List(names, 12))
	}
	return nil, p.Try("orrery twin create %s %s", t.call.Site.Name, name)
}

// Create records the twin r, whose site is s, on all hosts. All hosts must answer, because a host
// that does not may have the twin already.
func (t Twins) Create(ctx context.Context, s *site.Site, r twin.Record) error {
	all, silent, err := t.All(ctx)
	if err != nil {
		return err
	}
	if silent != nil {
		return silent
	}
	for _, existing := range all {
		if existing.Options.Name == r.Options.Name {
			on := ""
			if len(existing.On) > 0 {
				on = " on " + strings.Join(existing.On, " and ")
			}
			return problem.New(problem.Mistake, "site %s already has a twin %s%s, which belongs to %s", r.Site, r.Options.Name,
				on, existing.Options.Owner).
				Try("orrery --twin %s up brings it up; orrery twin destroy %[1]s destroys it", r.Options.Name)
		}
	}
	return t.call.ForSite(s).RecordTwin(ctx, r)
}

// RecordTwin stores the record of a twin on all its hosts that lack it. If one host fails,
// RecordTwin removes the new records again.
func (c *Connector) RecordTwin(ctx context.Context, r twin.Record) error {
	f, silent, err := c.ConnectWithoutReleases(ctx)
	if err != nil {
		return err
	}
	if silent != nil {
		return silent
	}
	fresh := make([]bool, len(f.All))
	err = f.ForEach(func(i int, h *apply.HostClient) error {
		records, err := h.Twins.List(ctx)
		if err != nil || slices.ContainsFunc(records, func(old twin.Record) bool {
			return old.Key() == r.Key() &&
				sameRecord(old, r)
		}) {
			return err
		}
		fresh[i] = !slices.ContainsFunc(records, func(old twin.Record) bool { return old.Key() == r.Key() })
		return h.Twins.Save(ctx, r)
	})
	if err == nil {
		return nil
	}
	return errors.Join(err, f.ForEach(func(i int, h *apply.HostClient) error {
		if !fresh[i] {
			return nil
		}
		return h.Twins.Forget(context.WithoutCancel(ctx))
	}))
}

// Hosts returns the hosts of a twin, for destroying it.
func (t Twins) Hosts(ctx context.Context, name string) (*site.Site, *apply.Fleet, error) {
	s := t.site(name)
	f, silent, err := t.call.ForSite(s).ConnectWithoutReleases(ctx)
	if err == nil {
		err = silent
	}
	return s, f, err
}
