// Package memory is a host in memory, for tests of plans and operations.
//
// The real worker carries out plans, but nodes, networks, layers, volumes and kernel settings exist
// in memory only. Only the worker's own files are written, below a directory.
//
// It is a package of its own because tests of several packages use it.
package memory

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"time"

	"orrery/internal/apply/local"
	"orrery/internal/apply/local/backends"
	"orrery/internal/engine"
	"orrery/internal/engine/fake"
	"orrery/internal/host"
	"orrery/internal/host/hostsfile"
	"orrery/internal/host/schedule"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/pack"
	"orrery/internal/secret"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// A Host is a host in memory, as one site sees it.
type Host struct {
	*fake.Host
	Worker *local.Host
	// Releases are the site as each release makes it, by number.
	Releases map[int]*site.Site
	// Healthy, if set, is called before a node's health checks, and returns an error if the node is
	// not healthy.
	Healthy func(n *spec.Node) error
	packer  *pack.Packer
}

// New returns a host without nodes. The site's files are below dir.
func New(dir, key, name string, cpus int, memory int64) *Host {
	h := &Host{Host: fake.NewHost(key, name, cpus, memory)}
	dirs := host.Dirs{State: dir + "/state", Run: dir + "/run"}
	h.Worker = local.NewHost(local.SiteState{
		Name: name, Key: key, Dirs: dirs, Engines: map[string]engine.Engine{"fake": bootEngine{h.Engine}},
		Secrets:  namedSecrets{secret.NewKeyring(&site.Site{Name: key}, dirs)},
		Backends: Backends(h.Host, dirs),
	})
	h.Answers = serve
	h.Named = func() bool {
		_, err := os.Stat(dirs.Names(key))
		return err == nil
	}
	return h
}

// Backends returns the backends of a host in memory.
func Backends(h *fake.Host, dirs host.Dirs) backends.Set {
	return backends.Set{Networks: h.Networks(), Traffic: h.Traffic(), Layers: h.Layers(dirs.State),
		Packages: fake.Packages{},
		Volumes:  h.Volumes(), Kernel: h.Kernel(), Records: h.Records(), Claims: claims{}, Timers: timers{},
		Hosts: hostsfile.File{Path: dirs.State + "/etc/hosts", Lock: dirs.Run + "/hosts.lock", Dirs: dirs}}
}

// SetSite sets the site of the steps.
func (h *Host) SetSite(s *site.Site) { h.packer = pack.New(s, h.Releases) }

// Observe returns what exists on the host.
func (h *Host) Observe() observe.Host {
	seen, err := h.Worker.State.Observe(context.Background(), nil)
	if err != nil {
		panic(err) // what is in memory does not fail
	}
	seen.Cpus, seen.Memory, seen.Online = h.Cpus, h.Memory, ""
	seen.Cards = h.CardsInUse(seen.Nodes)
	return seen
}

// Do does a step in the same way as a remote host: the step is packed, encoded and decoded, and the
// worker that gets it knows nothing else of the site.
func (h *Host) Do(ctx context.Context, s *plan.Step, say func(string)) error {
	ctx, cancel := h.KillContext(ctx)
	defer cancel()
	whole, err := h.packer.Pack(s, func() (*site.Site, error) {
		r, err := h.Worker.Releases.Read(ctx)
		if err != nil {
			return nil, err
		}
		return h.packer.LiveSite(r)
	})
	if err != nil {
		return err
	}
	text, err := plan.Encode(whole)
	if err != nil {
		return err
	}
	if whole, err = plan.Decode(text); err != nil {
		return err
	}
	if whole.Kind == plan.FetchLayer { // the hosts that have the layer are unknown here
		whole.Kind = plan.BuildLayer
	}
	setTimeouts(whole.Duties)
	var after error
	switch s.Kind {
	case plan.WriteNames, plan.RestoreNames, plan.ForgetNames, plan.CommitSwitch, plan.ForgetRelease, plan.FetchLayer:
		// no backend in memory takes part in these steps
		var before error
		if before, after = h.InjectedErrors(ctx, string(s.Kind), s.Subject); before != nil {
			return before
		}
	}
	if s.Kind == plan.CheckNode && h.Healthy != nil {
		if err := h.Healthy(s.Node); err != nil {
			return err
		}
	}
	if err := h.Worker.Runs.Do(ctx, whole, say); err != nil {
		return err
	}
	if s.Kind == plan.RepairNode {
		h.RemoveDrift(engine.RefOf(s.Node), s.Drift...)
	}
	return after
}

// timers ignores all timers.
type timers struct{}

func (timers) Set(schedule.Timers) ([]string, error) { return nil, nil }

// claims is empty, because only machines with several state directories need it.
type claims struct{}

func (claims) Claim(context.Context, string) error { return nil }
func (claims) Yield(context.Context, string)       {}

func (claims) Elsewhere(string) error { return nil }

// bootEngine is an engine whose nodes start no units at boot, so that none need be disabled.
type bootEngine struct{ *fake.Engine }

// Disable does nothing.
func (bootEngine) Disable(context.Context, engine.Ref, ...string) error { return nil }

// Inject returns an error, so that files are written once the node runs.
func (bootEngine) Inject(context.Context, engine.Ref, ...host.File) error {
	return errors.ErrUnsupported
}

// serve answers every request with success.
func serve(c net.Conn) {
	defer c.Close() //nolint:errcheck // it is in memory
	if _, err := c.Read(make([]byte, 4096)); err == nil {
		_, _ = io.WriteString(c, "HTTP/1.1 204 No Content\r\n\r\n")
	}
}

// setTimeouts sets the timeouts of steps and checks. Site files set them, but sites made by tests do
// not.
func setTimeouts(d *spec.RoleActions) {
	if d == nil {
		return
	}
	for i := range d.Roles {
		for k := range d.Roles[i].Steps {
			d.Roles[i].Steps[k].Timeout = max(d.Roles[i].Steps[k].Timeout, time.Minute)
		}
		for k := range d.Roles[i].Health {
			c := &d.Roles[i].Health[k]
			c.Timeout, c.Interval, c.Within = max(c.Timeout, time.Minute), max(c.Interval, time.Second),
				max(c.Within, time.Minute)
		}
	}
}

// namedSecrets is a keyring in which the value of each secret is its name.
type namedSecrets struct{ *secret.Keyring }

// Value returns the name.
func (namedSecrets) Value(_ context.Context, name string) (string, error) { return name, nil }

// Text returns an error.
func (namedSecrets) Text(context.Context, spec.SecretText) ([]byte, error) {
	return nil, os.ErrNotExist
}
