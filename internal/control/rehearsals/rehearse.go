package rehearsals

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"time"

	"orrery/internal/control"
	"orrery/internal/control/layers"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/rehearsal"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
	"orrery/internal/tree"
)

// Rehearse simulates the hosts of a site while a command runs on the control host, in the site
// directory. Simulated hosts cannot fetch packages, so the layers that nodes need are built on this
// machine first.
func Rehearse(ctx context.Context, c *control.Session, s *site.Site, command host.Command) error {
	places, steering, err := Places(s)
	if err != nil {
		return err
	}
	if err := layers.BuildLocal(ctx, c, s); err != nil {
		return err
	}
	o, err := options(c, s, places)
	if err != nil {
		return err
	}
	h, err := rehearsal.Start(o)
	if err != nil {
		return problem.New(problem.Failed, "the hosts of site %s cannot be simulated", s.Key()).Because(err).
			Try("orrery doctor shows what this machine lacks")
	}
	defer h.Close() //nolint:errcheck // it has been, and that was said
	text := "on " + places[steering-1].Name + ", in a rehearsal"
	if others := otherNames(places, steering); len(others) > 0 {
		text += " with " + humanize.List(others, 12)
	}
	c.Watcher.Event(control.Event{Kind: control.Outcome, Site: s.Key(), Text: text})
	command.Args = append([]string{"/bin/sh", "-c", `cd "$0" && exec "$@"`, o.Binds[0]}, command.Args...)
	err = h.At(steering).Run(ctx, command)
	if left := h.Close(); left != nil { // the status of the command counts
		c.Watcher.Event(control.Event{Kind: control.Trouble, Site: s.Key(), Text: left.Error(), Err: left})
	}
	return err
}

// options returns what the hosts have.
func options(c *control.Session, s *site.Site, places []rehearsal.Place) (rehearsal.Options, error) {
	o := rehearsal.Options{State: state(c), Name: s.Key(), Places: places, Store: filepath.Join(c.Dirs.State, "store")}
	dir, err := c.AbsDirectory()
	if err != nil {
		return o, err
	}
	if dir, err = filepath.EvalSymlinks(dir); err != nil {
		return o, err
	}
	o.Binds = []string{dir}
	program, err := os.Executable()
	if err != nil {
		return o, err
	}
	o.Programs = map[string]string{"orrery": program}
	if guest := filepath.Join(filepath.Dir(program), "orrery-guest"); tree.Exists(guest) {
		o.Programs["orrery-guest"] = guest
	}
	return o, nil
}

// state returns the directory for what rehearsals have outside of their namespaces.
func state(c *control.Session) string { return filepath.Join(c.Dirs.State, "rehearsals") }

func otherNames(places []rehearsal.Place, but int) (names []string) {
	for i, p := range places {
		if i+1 != but {
			names = append(names, p.Name)
		}
	}
	return names
}

// Current returns the rehearsal of a site that is under way. It can be called on this machine or on
// one of the simulated hosts.
func Current(c *control.Session, s *site.Site) (*rehearsal.Hosts, error) {
	socket := rehearsal.SocketInHost
	if !tree.Exists(socket) {
		socket = rehearsal.Socket(state(c), s.Key())
	}
	h, err := rehearsal.Attach(socket)
	if err != nil {
		return nil, problem.New(problem.Usage, "no rehearsal of site %s is under way", s.Key()).Because(err).
			Try("start one with orrery rehearse, and run this command in it or in another terminal")
	}
	return h, nil
}

// FindHost returns a host of a rehearsal that is under way.
func FindHost(h *rehearsal.Hosts, name string) (rehearsal.Host, error) {
	places := h.Places()
	i := slices.IndexFunc(places, func(p rehearsal.Place) bool { return p.Name == name })
	if i < 0 {
		return rehearsal.Host{}, problem.New(problem.Usage, "no host is called %q", name).
			Try("the rehearsal has %s", humanize.List(otherNames(places, 0), 12))
	}
	return h.At(i + 1), nil
}

// MeasureOutages returns how long nodes did not answer nodes on other hosts while do ran.
func MeasureOutages(h *rehearsal.Hosts, s *site.Site, do func() error) ([]rehearsal.OutageSummary, error) {
	var targets []rehearsal.Target
	for i := range s.Nodes {
		for _, nic := range s.Nodes[i].NICs {
			if nic.Address.IsValid() {
				targets = append(targets, rehearsal.Target{Node: s.Nodes[i].Name, Address: nic.Address})
			}
		}
	}
	stop, err := h.Watch(rehearsal.ProbeRequest{Command: []string{"orrery", WitnessVerb, s.Key()}, Targets: targets})
	if err != nil {
		return nil, err
	}
	time.Sleep(settleTime)
	did := do()
	time.Sleep(rehearsal.OutageThreshold)
	seen, err := stop()
	if err != nil {
		return nil, errors.Join(did, err)
	}
	return rehearsal.SummarizeOutages(targets, seen, time.Now()), did
}

// settleTime is how long witnesses have to find out which nodes answer at all.
const settleTime = time.Second
