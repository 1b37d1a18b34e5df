package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/stand"
	"orrery/internal/site"
)

// A timed host is one whose clock is ahead, and that takes some time to answer.
type timed struct {
	*stub
	ahead, took time.Duration
}

// The subjects that it implements.
type (
	timedRuns struct {
		stubRuns
		timed timed
	}
	timedSecrets struct {
		stubSecrets
		word string
	}
)

func (h timedRuns) Clock(context.Context) (ahead, took time.Duration, err error) {
	return h.timed.ahead, h.timed.took, h.failure
}

func (h timedRuns) LastDuration(_ context.Context, _ *plan.Step) (time.Duration, error) {
	return h.timed.took, nil
}

func (h timedSecrets) Redact(text string) string {
	return strings.ReplaceAll(text, h.word, "["+h.word+"]")
}

func timedFleet(hosts ...timed) *Fleet {
	var stubs []*stub
	for _, h := range hosts {
		stubs = append(stubs, h.stub)
	}
	f := fleetOf(stubs...)
	for i, h := range hosts {
		f.All[i].Runs = timedRuns{stubRuns{nil, h.stub}, h}
		f.All[i].Secrets = timedSecrets{stubSecrets{nil, h.stub}, h.word}
	}
	return f
}

// TestEach: the function is called for all hosts, even if it fails for some, and all errors are
// returned.
func TestEach(t *testing.T) {
	f := fleetOf(&stub{}, &stub{}, &stub{})
	var mutex sync.Mutex
	var on []string
	err := f.ForEach(func(i int, h *HostClient) error {
		mutex.Lock()
		defer mutex.Unlock()
		on = append(on, fmt.Sprint(i, h.Name))
		if i == 1 {
			return nil
		}
		return errors.New("no " + h.Name)
	})
	slices.Sort(on)
	if strings.Join(on, " ") != "0sv1 1sv2 2sv3" || err == nil || err.Error() != "no sv1\nno sv3" {
		t.Errorf("done on %v: %v", on, err)
	}
	for name, want := range map[string]bool{"sv1": true, "sv3": true, "sv4": false} {
		if h, ok := f.Host(name); ok != want || ok && h.Name != name {
			t.Errorf("host %s: %v, %t", name, h, ok)
		}
	}
}

// TestTook: the duration of a step comes from its host, and is unknown if there is no such host.
func TestTook(t *testing.T) {
	f := timedFleet(timed{stub: &stub{word: "one"}, took: time.Second}, timed{stub: &stub{word: "two"}, took: time.Minute})
	for host, want := range map[string]time.Duration{"sv1": time.Second, "sv2": time.Minute, "sv3": 0} {
		if took, err := f.LastDuration(t.Context(), &plan.Step{Host: host}); took != want || err != nil {
			t.Errorf("host %s: %s, %v", host, took, err)
		}
	}
	if text := f.Redact("one and two"); text != "[one] and [two]" {
		t.Errorf("with the secrets of two hosts it is %q", text)
	}
}

// TestMeetClocks: hosts act at the same moment, each by its own clock. The moment is late enough
// for the slowest host to receive the request, but at most a second away. A single host does not
// wait.
func TestMeetClocks(t *testing.T) {
	for what, c := range map[string]struct{ slowest, margin time.Duration }{
		"in one room": {time.Microsecond, minStartMargin},
		"far away":    {100 * time.Millisecond, 400 * time.Millisecond},
		"very far":    {time.Minute, time.Second},
	} {
		f := timedFleet(timed{stub: &stub{}, took: time.Nanosecond},
			timed{stub: &stub{}, ahead: time.Hour, took: c.slowest}, timed{stub: &stub{}, ahead: -time.Hour})
		if err := f.MeasureClocks(t.Context()); err != nil {
			t.Fatal(err)
		}
		before := time.Now()
		at := f.All[0].StartTime()
		if late := at.Sub(before); late < c.margin || late > c.margin+10*time.Second {
			t.Errorf("%s: they meet in %s", what, late)
		}
		if ahead := f.All[1].StartTime(); !f.All[1].ToLocalTime(ahead).Equal(ahead.Add(-time.Hour)) {
			t.Errorf("%s: the moment %s is %s here", what, ahead, f.All[1].ToLocalTime(ahead))
		}
	}
	alone := timedFleet(timed{stub: &stub{failure: errors.New("it has no clock")}})
	if err := alone.MeasureClocks(t.Context()); err != nil || !alone.All[0].StartTime().IsZero() {
		t.Errorf("one host meets at %s: %v", alone.All[0].StartTime(), err)
	}
	lost := timedFleet(timed{stub: &stub{}}, timed{stub: &stub{failure: errors.New("lost")}})
	if err := lost.MeasureClocks(t.Context()); err == nil {
		t.Error("a host that cannot tell the time meets others")
	}
}

// TestDoubts: each doubt is returned once.
func TestDoubts(t *testing.T) {
	f := fleetOf(&stub{})
	f.warn("%s is odd", "sv1")
	f.warn("so is %s", "sv2")
	if all := f.Warnings(); strings.Join(all, ", ") != "sv1 is odd, so is sv2" {
		t.Errorf("%q", all)
	}
	if again := f.Warnings(); len(again) > 0 {
		t.Errorf("again: %q", again)
	}
}

// TestAsReached: AtConnect returns the record that was read when the hosts were reached, if there
// is one.
func TestAsReached(t *testing.T) {
	f := fleetOf(&stub{releases: observe.Releases{ID: "now"}})
	if r, err := f.Records().AtConnect(t.Context()); err != nil || r.ID != "now" {
		t.Errorf("%+v, %v", r, err)
	}
	f.Reached = &observe.Releases{ID: "then"}
	if r, err := f.Records().AtConnect(t.Context()); err != nil || r.ID != "then" {
		t.Errorf("%+v, %v", r, err)
	}
}

// TestMayNeed: a host gets the secrets of nodes that are on it, or may be placed on it, in the site
// or in a release of it.
func TestMayNeed(t *testing.T) {
	role := func(names ...string) []site.Role {
		r := site.Role{Name: "r"}
		for _, name := range names {
			r.Secrets = append(r.Secrets, site.SecretUse{Name: name})
		}
		return []site.Role{r, {Name: "other"}}
	}
	for what, c := range map[string]struct {
		hosts  int
		on     string // the host of the node, or "" for any
		roles  []string
		of     string // a secret of the release
		sv1    bool
		sv2    bool
		secret string
	}{
		"one host":                   {hosts: 1, secret: "none", sv1: true},
		"of a node that is anywhere": {hosts: 2, roles: []string{"r"}, secret: "token", sv1: true, sv2: true},
		"of a node on one host":      {hosts: 2, on: "sv2", roles: []string{"other", "r"}, secret: "token", sv2: true},
		"of no node":                 {hosts: 2, roles: []string{"other"}, secret: "token"},
		"another secret":             {hosts: 2, roles: []string{"r"}, secret: "none"},
		"of a release":               {hosts: 2, on: "sv1", roles: []string{"r"}, of: "key", secret: "key", sv1: true},
	} {
		f := fleetOf([]*stub{{}, {}}[:c.hosts]...)
		s := f.Site()
		s.Roles, s.Nodes = role("seed", "token"), []site.Node{{Name: "a", Host: c.on, Roles: c.roles}}
		if c.of != "" {
			of := *s
			of.Roles = role(c.of)
			f.All[0].packer.AddRelease(700, &of)
			f.All[1].packer.AddRelease(700, &of)
		}
		for i, want := range []bool{c.sv1, c.sv2}[:c.hosts] {
			if got := f.All[i].MayNeedSecret(c.secret); got != want {
				t.Errorf("%s: host %s may need it: %t", what, f.All[i].Name, got)
			}
		}
	}
}

// TestExplain: if a live release is not used, the error gives the reason, and not that the release
// is missing.
func TestExplain(t *testing.T) {
	f, why, other := fleetOf(&stub{}), errors.New("its copy is forged"), errors.New("the disk is full")
	f.Views().Withhold(700, why)
	for what, c := range map[string]struct{ err, want error }{
		"that release":    {fmt.Errorf("no plan: %w", &stand.LostError{Release: 700}), why},
		"another release": {&stand.LostError{Release: 701}, &stand.LostError{Release: 701}},
		"something else":  {other, other},
		"nothing":         {},
	} {
		if got := f.Views().Explain(c.err); fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("%s: %v", what, got)
		}
	}
}

// TestSites: a switch gets the site without a release, and the site as each release makes it.
func TestSites(t *testing.T) {
	f := fleetOf(&stub{})
	release := &site.Site{Name: "demo", Nodes: []site.Node{{Name: "a", Release: 700}}}
	f.All[0].packer.AddRelease(700, release)
	if all := f.Views().Sites(); len(all) != 2 || all[0] != f.Site() || all[700] != release {
		t.Errorf("%v", all)
	}
	staged := &site.Site{Name: "demo", Nodes: []site.Node{{Name: "a", Release: 701}}}
	f.Views().Use(staged)
	if all := f.Views().Sites(); len(all) != 2 || all[701] != staged || all[700] != release {
		t.Errorf("in quarantine: %v", all)
	}
	if none := (&Fleet{}); none.Site() != nil || none.Views().Releases() != nil {
		t.Error("there is a site without hosts")
	}
}
