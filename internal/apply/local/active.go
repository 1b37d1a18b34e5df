package local

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"orrery/internal/engine"
	"orrery/internal/image"
	"orrery/internal/network"
	"orrery/internal/plan"
	"orrery/internal/role"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/volume"
)

// move takes the links of nodes to other networks, all in one batch, and then on record.
func (h *Host) move(ctx context.Context, moves []plan.Move) error {
	var links []network.Move
	var live []string // network namespaces of those that go live
	for _, m := range moves {
		if s, able := h.Engines[m.Is.Engine].(engine.Spacer); able && !m.Is.Staged {
			if at := s.Space(engine.RefOf(m.Is)); at != "" {
				live = append(live, at)
			}
		}
		for _, nic := range m.Is.NICs {
			if m.Is.KindOf(nic) == site.Bridge {
				links = append(links, network.Move{Link: nic.HostEnd, Bridge: nic.Bridge})
			}
		}
	}
	if err := network.MoveLinks(ctx, links, live...); err != nil {
		return err
	}
	var now, later []*spec.Node
	for _, m := range moves {
		if m.Is.Staged {
			later = append(later, m.Is)
		} else {
			now = append(now, m.Is) // clients wait for these
		}
	}
	err := h.settled(ctx, now)
	return errors.Join(err, h.settled(ctx, later))
}

// settled lets engines know where the links of nodes are now.
func (h *Host) settled(ctx context.Context, nodes []*spec.Node) error {
	errs := make([]error, len(nodes))
	var all sync.WaitGroup
	for i, n := range nodes {
		all.Go(func() {
			e, err := h.engine(n)
			if err == nil {
				err = e.Change(ctx, n)
			}
			errs[i] = err
		})
	}
	all.Wait()
	return errors.Join(errs...)
}

// provide makes the volumes of a node that is about to start, or copies of them if it is in quarantine.
func (h *Host) provide(ctx context.Context, n *spec.Node) error {
	account := func(owner string) (int, int, error) { return image.Account(h.trees(n), owner) }
	for _, m := range n.Mounts {
		var err error
		switch m.Copy {
		case "":
			err = volume.Provide(h.Dirs, n.Site, n.Name, m, account)
		case spec.NoCopy:
		default:
			err = h.provideCopy(ctx, n, m, account)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// provideCopy copies a volume for the quarantine, while all who write into it stand still.
func (h *Host) provideCopy(ctx context.Context, n *spec.Node, m spec.Mount, account volume.Account) error {
	made, err := volume.ProvideCopy(ctx, h.Dirs, n.Site, n.Name, m, account, h.Still(volume.Path(h.Dirs, n.Site, n.Name, volume.Live(m))))
	h.leaving.Lock()
	defer h.leaving.Unlock()
	for _, what := range made.Left {
		h.left = append(h.left, fmt.Sprintf("volume %s of %s: %s", m.Volume, n.Name, what))
	}
	return err
}

// Left gives what is not in the copies of volumes that were made, and why.
func (h *Host) Left() []string {
	h.leaving.Lock()
	defer h.leaving.Unlock()
	return slices.Clone(h.left)
}

// Still makes all nodes of the site that write into a directory of a volume stand still while it is copied. If one runs and cannot be made
// to, or it is not known which of them run, nothing is copied.
func (h *Host) Still(path string) volume.Still {
	return func(ctx context.Context, do func(context.Context) error) error {
		h.standing.Lock()
		defer h.standing.Unlock()
		running, err := engine.Running(ctx, h.Engines, h.Site.Key())
		if err != nil {
			return err
		}
		writers := volume.Users(h.Dirs, h.Site.Key(), running, path)
		if len(writers) == 0 {
			return do(ctx)
		}
		letGo := func() {}
		if h.Guard != nil {
			if letGo, err = h.Guard(writers...); err != nil {
				return err
			}
		}
		_, err = engine.Still(ctx, h.Engines, writers, do)
		if err == nil {
			letGo() // else it lets go on whoever does not, as soon as we end
		}
		return err
	}
}

// retire ends on a node what must not run twice, and takes from it the volumes that are not for two.
func (h *Host) retire(ctx context.Context, e engine.Engine, n *spec.Node, say func(string)) error {
	if err := h.unsettle(ctx, e, n); err != nil {
		return err
	}
	if err := h.apply(ctx, e, n, say, (*role.Job).Retire); err != nil {
		return err
	}
	if err := h.remount(ctx, e, n); err != nil {
		return err
	}
	if err := h.dropFormer(n); err != nil {
		return err
	}
	return h.settle(ctx, e, n, false, nil)
}

// take gives a node in quarantine its volumes in place of the copies. Their services start when it is live.
func (h *Host) take(ctx context.Context, e engine.Engine, n *spec.Node, say func(string)) error {
	if err := h.unsettle(ctx, e, n); err != nil {
		return err
	}
	if err := h.apply(ctx, e, n, say, (*role.Job).Let); err != nil {
		return err
	}
	if err := h.provide(ctx, n); err != nil {
		return err
	}
	return h.remount(ctx, e, n)
}

// giveBack is the way back from take.
func (h *Host) giveBack(ctx context.Context, e engine.Engine, n *spec.Node, say func(string)) error {
	if err := h.take(ctx, e, n, say); err != nil {
		return err
	}
	if err := h.apply(ctx, e, n, say, (*role.Job).Resume); err != nil {
		return err
	}
	return h.settle(ctx, e, n, false, nil)
}

// activate does on a node what only a live node does. It is on record before it begins.
func (h *Host) activate(ctx context.Context, e engine.Engine, n *spec.Node, say func(string)) error {
	if err := h.remount(ctx, e, n); err != nil {
		return err
	}
	if err := h.unsettle(ctx, e, n); err != nil {
		return err
	}
	if err := h.apply(ctx, e, n, say, (*role.Job).Activate); err != nil {
		return err
	}
	s, declared, err := h.declared(n)
	if err != nil {
		return err
	}
	return h.settle(ctx, e, n, true, spec.Active(s.RolesOf(declared)))
}

// apply does some of what the roles of a node ask for.
func (h *Host) apply(ctx context.Context, e engine.Engine, n *spec.Node, say func(string), do func(*role.Job, context.Context) error) error {
	job, log, err := h.job(e, n, say)
	if err != nil {
		return err
	}
	defer log.Close() //nolint:errcheck // what a log lacks at its end is no reason to fail
	if err := do(job, ctx); err != nil {
		return h.redact(err)
	}
	return nil
}

func (h *Host) remount(ctx context.Context, e engine.Engine, n *spec.Node) error {
	if len(n.Mounts) == 0 {
		return nil
	}
	r, able := e.(engine.Remounter)
	if !able {
		return fmt.Errorf("engine %s cannot change the volumes of a running node", n.Engine)
	}
	return r.Remount(ctx, n)
}

// unsettle takes down, before services of a node stop or start, that it is not known which of them run, and that it may do what only a
// live node does. If this process is killed meanwhile, the node is configured anew.
func (h *Host) unsettle(ctx context.Context, e engine.Engine, n *spec.Node) error {
	was, err := h.recorded(n)
	if err != nil {
		return err
	}
	h.whole.LoadOrStore(n.ID, was.Configured)
	return e.Mark(ctx, engine.RefOf(n), engine.Mark{Config: was.Config, Proven: was.Proven, ProvenAt: was.ProvenAt, Active: was.Active || !n.Staged})
}

// settle takes down that it is known again, and whether the node does what only a live node does, and what (nil: as before).
func (h *Host) settle(ctx context.Context, e engine.Engine, n *spec.Node, active bool, does spec.Parts) error {
	was, err := h.recorded(n)
	if err != nil {
		return err
	}
	config := was.Config
	if does != nil {
		config.Active = does
	}
	configured := was.Configured
	if before, ok := h.whole.LoadAndDelete(n.ID); ok {
		configured = before.(bool)
	}
	return e.Mark(ctx, engine.RefOf(n), engine.Mark{Configured: configured, Config: config, Proven: was.Proven, ProvenAt: was.ProvenAt, Active: active})
}
