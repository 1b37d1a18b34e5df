package hosts

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control/here"
	"orrery/internal/hook"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/volume"
)

// SaveMirrorPlans has hosts bring mirrors up to date as often as the site file says, or no more if there are none. All hosts know all mirrors, so a node that
// moves is mirrored wherever it is.
func (c *Call) SaveMirrorPlans(ctx context.Context, f *apply.Fleet, mirrors []volume.Mirror) error {
	p := apply.UnattendedPlan{Trigger: apply.OnMirror, Every: map[string]time.Duration{}}
	if len(mirrors) > 0 {
		p.Hooks = hooksOn(c.Site, site.MirrorFailed)
		of, err := Directories(c.Site, mirrors)
		if err != nil {
			return err
		}
		p.Of = slices.DeleteFunc(slices.Concat(of...), func(d apply.Directory) bool { return d.Every == 0 })
	}
	for _, d := range p.Of {
		p.Every[d.Mount.Volume] = d.Every
	}
	var mutex sync.Mutex
	return f.Each(func(_ int, h *apply.Steered) error {
		p := p
		p.Host = h.Name
		notes, err := h.State.SavePlan(ctx, p)
		mutex.Lock()
		defer mutex.Unlock()
		for _, note := range notes {
			if len(c.Site.Hosts) > 1 {
				note = "host " + h.Name + ": " + note
			}
			c.Notice("%s", note)
		}
		return err
	})
}

// Directories gives those of the volumes of each node of a site, in its order, with what their mirrors are.
func Directories(s *site.Site, mirrors []volume.Mirror) ([][]apply.Directory, error) {
	by := map[[2]string]volume.Mirror{}
	for _, m := range mirrors {
		by[[2]string{m.Volume, m.Node}] = m
	}
	maker, all := spec.NewMaker(s), make([][]apply.Directory, len(s.Nodes))
	for i := range s.Nodes {
		spelt, err := maker.Node(&s.Nodes[i])
		if err != nil {
			return nil, err
		}
		for _, m := range spelt.Mounts {
			d := apply.Directory{Node: spelt.Name, Mount: m}
			is := by[[2]string{m.Volume, d.Name()}]
			d.Mirror, d.Every = is.To, is.Every
			all[i] = append(all[i], d)
		}
	}
	return all, nil
}

// MirrorOwn brings the mirrors of a volume up to date of which this machine has directories, by what it has on record itself. Each is told of when it has been tried; of one that has failed, hooks are notified.
func MirrorOwn(ctx context.Context, m here.Machine, dirs host.Dirs, key, name string, by host.Holder, each func(volume.Mirrored)) error {
	if err := m.Allowed(); err != nil {
		return err
	}
	s, err := keyed(key)
	if err != nil {
		return err
	}
	stayFresh(dirs)
	all, err := apply.ReadUnattended(dirs, key, apply.OnMirror)
	if err != nil {
		return problem.New(problem.Failed, "what this host mirrors of site %s cannot be read", key).At(apply.UnattendedPath(dirs, key, apply.OnMirror)).Because(err).Try("orrery up, from a machine with the site directory")
	}
	h := m.Host(all.Host, key, nil)
	nodes, err := h.Nodes.List(ctx)
	if err != nil {
		return err
	}
	on := map[string]bool{}
	for _, n := range nodes {
		on[n.Name] = on[n.Name] || !n.Staged
	}
	seen := map[string]bool{}
	of := slices.DeleteFunc(all.Of, func(d apply.Directory) bool {
		again := seen[d.Mirror]
		out := again || d.Mount.Volume != name || !on[d.Node]
		seen[d.Mirror] = again || !out
		return out
	})
	if len(of) == 0 {
		return nil // they have moved
	}
	s.Hooks = all.Hooks
	var untold error
	err = h.Volumes.Mirror(ctx, of, apply.MirrorRun{By: by}, func(made volume.Mirrored) {
		each(made)
		if made.Problem != "" {
			e := hook.Event{Event: site.MirrorFailed, Result: "failed", Why: made.Problem, Volume: made.Volume, Node: made.Node}
			untold = errors.Join(untold, notify(ctx, m, dirs, s, e))
		}
	})
	return errors.Join(err, untold)
}

// stayFresh keeps this program from being removed as one that nobody has started for long (host/reach), if it was brought here.
func stayFresh(dirs host.Dirs) {
	program, err := os.Executable()
	if dir := filepath.Dir(program); err == nil && filepath.Dir(dir) == filepath.Join(dirs.State, "helper") {
		_ = os.Chtimes(dir, time.Time{}, time.Now())
	}
}
