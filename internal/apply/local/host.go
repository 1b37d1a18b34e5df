// Package local does the steps of a plan on the host on which Orrery runs.
package local

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"orrery/internal/apply"
	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/network"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/secret"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/snapshot"
	"orrery/internal/volume"
)

// Host does the steps of one site's plans on this machine.
type Host struct {
	Name    string // what the site calls it
	Dirs    host.Dirs
	Site    *site.Site
	Engines map[string]engine.Engine
	Store   *image.Store
	Keys    *secret.Keyring
	// Releases gives, by number, the site as a release that is or may become live makes it.
	Releases map[int]*site.Site
	// Guard, if set, sees to it that nodes go on that stand still when this process is killed, until it is let go.
	Guard func(nodes ...*spec.Node) (letGo func(), err error)
	// Created is told of a node that has been made, before it is started; nil: nobody is.
	Created func(ctx context.Context, e engine.Engine, n *spec.Node) error

	releases sync.Mutex        // held while what is live is read or written
	standing sync.Mutex        // held while nodes stand still for a copy: who lets them go on must not do so under another
	leaving  sync.Mutex        // held while left is read or written
	left     []string          // what is not in copies of volumes that were made, and why
	lives    *site.Site        // what Live gave; nil: not yet, or other releases are live since
	keys     sync.Mutex        // held while an SSH host key is made
	common   sync.Map          // sharedText -> func that gives it
	saved    sync.Map          // node -> what it was before ConfigureNode, for RevertNode
	whole    sync.Map          // nodes whose services were stopped or started in this run -> whether they had been configured
	ready    sync.Map          // nodes whose files were injected before they booted in this run
	booting  sync.Map          // nodes, by id, that were started in this run, and that nobody has seen at the end of their boot
	former   map[string][]byte // files as they were before writeNames, for restoreNames
}

var _ apply.Host = (*Host)(nil)

// New gives the host that runs Orrery, for a site.
func New(name string, dirs host.Dirs, s *site.Site, engines map[string]engine.Engine, store *image.Store) *Host {
	return &Host{
		Name: name, Dirs: dirs, Site: s, Engines: engines, Store: store,
		Keys: secret.NewKeyring(s, dirs),
	}
}

// Observe looks at what is there of the site.
func (h *Host) Observe(ctx context.Context) (observe.Host, error) {
	seen := observe.Host{Name: h.Name, Cpus: runtime.NumCPU(), Online: host.Online(), Memory: host.TotalMemory()}
	for _, e := range h.Engines {
		nodes, err := e.List(ctx, h.Site.Key())
		if err != nil {
			return seen, err
		}
		seen.Nodes = append(seen.Nodes, nodes...)
	}
	var err error
	if seen.Networks, err = network.Observe(h.Site.Key()); err != nil {
		return seen, fmt.Errorf("networks of this host: %w", err)
	}
	if seen.Layers, err = h.Store.Layers(); err != nil {
		return seen, err
	}
	if seen.Volumes, err = volume.List(h.Dirs, h.Site.Key()); err != nil {
		return seen, err
	}
	names, _ := os.ReadFile(h.Dirs.Names(h.Site.Key()))
	seen.Names = string(names)
	seen.Settings = host.Settings(settingNames())
	seen.Engines = map[string]observe.Capabilities{}
	for name, e := range h.Engines {
		seen.Engines[name] = e.Capabilities()
	}
	seen.Releases, err = h.ReadReleases()
	return seen, err
}

func settingNames() []string {
	var names []string
	for name := range plan.HostSettings {
		names = append(names, name)
	}
	return names
}

// Sweep ends and removes what runs that were killed left behind. Only the holder of the lock may call it.
func (h *Host) Sweep(ctx context.Context) error {
	for _, e := range h.Engines {
		if s, ok := e.(engine.Sweeper); ok {
			if err := s.Sweep(ctx, h.Site.Key()); err != nil {
				return err
			}
		}
	}
	err := volume.Sweep(h.Dirs, h.Site.Key())
	err = errors.Join(err, snapshot.Sweep(h.Dirs, h.Site.Key()))
	return errors.Join(err, h.Store.Sweep())
}

// Do does one step.
func (h *Host) Do(ctx context.Context, s *plan.Step, say func(string)) error {
	if s.Kind == plan.MoveLinks {
		return h.move(ctx, s.Moves)
	}
	if s.ForNode() {
		return h.doNode(ctx, s, say)
	}
	switch s.Kind {
	case plan.PrepareHost:
		return host.Prepare(h.Dirs.Run, s.Settings)
	case plan.RestoreHost:
		return h.restore(ctx)
	case plan.MakeNetwork:
		return h.makeNetwork(ctx, *s.Network)
	case plan.RemoveNetwork:
		return network.Remove(ctx, *s.Network)
	case plan.WriteNames:
		return h.writeNames(s.Names)
	case plan.RestoreNames:
		return h.restoreNames()
	case plan.ForgetNames:
		return h.forgetNames()
	case plan.BuildLayer:
		return h.build(ctx, s.Layer, say)
	case plan.RemoveVolume:
		return volume.Erase(s.Path)
	case plan.CommitSwitch:
		return h.commit(*s.Releases)
	case plan.ForgetRelease:
		return h.forgetRelease(s.Release)
	}
	return unknown(s)
}

func (h *Host) doNode(ctx context.Context, s *plan.Step, say func(string)) error {
	n := s.Node
	if n == nil {
		n = s.Was
	}
	e, err := h.engine(n)
	if err != nil {
		return err
	}
	ref := engine.RefOf(n)
	switch s.Kind {
	case plan.CreateNode:
		if _, err := h.hostKey(n.Name); err != nil {
			return err
		}
		if err := e.Create(ctx, n); err != nil || h.Created == nil {
			return err
		}
		return h.Created(ctx, e, n)
	case plan.ReplaceNode:
		if keeper, ok := e.(engine.Keeper); ok {
			return keeper.Replace(ctx, n)
		}
		if err := e.Destroy(ctx, ref); err != nil {
			return err
		}
		return e.Create(ctx, n)
	case plan.RestoreNode:
		return h.restoreNode(ctx, e, n)
	case plan.ReshapeNode, plan.LimitNode:
		return e.Change(ctx, n)
	case plan.StartNode:
		return h.start(ctx, e, n)
	case plan.StopNode:
		return stop(ctx, e, ref, stopPatience)
	case plan.KillNode:
		return stop(ctx, e, ref, 0)
	case plan.DestroyNode:
		return e.Destroy(ctx, ref)
	case plan.ConfigureNode:
		return h.configure(ctx, e, s, say)
	case plan.MendNode:
		return h.mend(ctx, e, s, say)
	case plan.RevertNode:
		return h.revert(ctx, e, s)
	case plan.CheckNode:
		return h.check(ctx, e, n, say)
	case plan.RetireNode:
		return h.retire(ctx, e, n, say)
	case plan.TakeVolumes:
		return h.take(ctx, e, n, say)
	case plan.ReturnVolumes:
		return h.giveBack(ctx, e, n, say)
	case plan.ActivateNode:
		return h.activate(ctx, e, n, say)
	}
	return unknown(s)
}

// stop shuts a node down, and by force when patience is at its end.
func stop(ctx context.Context, e engine.Engine, ref engine.Ref, patience time.Duration) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	return e.Stop(ctx, ref)
}

func unknown(s *plan.Step) error {
	return fmt.Errorf("a step of kind %q cannot be done on this host", s.Kind)
}

// restore gives the host its own settings back when no site has a node on it any more.
func (h *Host) restore(ctx context.Context) error {
	if err := volume.Release(h.Dirs); err != nil {
		return err
	}
	for _, e := range h.Engines {
		nodes, err := e.List(ctx, "")
		if err != nil || len(nodes) > 0 {
			return err
		}
	}
	if err := network.Sweep(ctx); err != nil {
		return err
	}
	if networks, err := network.Observe(""); err != nil || len(networks) > 0 {
		return err
	}
	return host.Restore(h.Dirs.Run)
}

// Log opens what the roles of a node printed.
func (h *Host) Log(node string) (io.ReadCloser, error) {
	return os.Open(filepath.Join(h.Dirs.Logs(h.Site.Key()), node+".log"))
}

// log opens the log of a node or layer for appending, behind a writer that hides secrets.
func (h *Host) log(name string) (io.WriteCloser, error) {
	if err := os.MkdirAll(h.Dirs.Logs(h.Site.Key()), 0o700); err != nil {
		return nil, err
	}
	f, err := host.OpenLog(filepath.Join(h.Dirs.Logs(h.Site.Key()), name+".log"), 0o600)
	if err != nil {
		return nil, err
	}
	return &redacted{h.Keys.NewWriter(f), f}, nil
}

type redacted struct {
	*secret.Writer
	file *host.Log
}

func (r *redacted) Close() error {
	err := r.Flush()
	return errors.Join(err, r.file.Close())
}
