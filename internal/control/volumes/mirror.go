package volumes

import (
	"context"
	"slices"
	"sync"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/journal/hook"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/event"
	"orrery/internal/volume"
)

// Mirrored is the result of updating the mirror of a volume.
type Mirrored = volume.MirrorStatus

// MirrorOptions say what to mirror, and how.
type MirrorOptions struct {
	Names    []string // volume names, or none for all volumes with a mirror
	Contents bool     // compare contents instead of sizes and times
}

// Mirror updates mirrors. Each host updates the mirrors of its own volumes. Mirror calls each for
// every mirror that was updated.
func Mirror(ctx context.Context, c *control.Session, o MirrorOptions, each func(Mirrored)) error {
	p, err := mirrors(ctx, c, o.Names)
	if err != nil {
		return err
	}
	var mutex sync.Mutex
	return p.fleet.ForEach(func(_ int, h *apply.HostClient) error {
		of := p.on[h.Name]
		if len(of) == 0 {
			return nil
		}
		return h.Volumes.Mirror(ctx, of, apply.MirrorRun{Contents: o.Contents, By: control.Holder(c)}, func(made Mirrored) {
			mutex.Lock()
			defer mutex.Unlock()
			if made.Problem == "" {
				each(made)
				return
			}
			c.NotifyHooks(ctx, p.site, hook.Event{Event: event.MirrorFailed, Result: "failed", Why: made.Problem,
				Volume: made.Volume,
				Node:   made.Node})
		})
	})
}

// Compared is a directory of a volume, and its differences from its mirror.
type Compared struct {
	Volume, Node, From, To string
	Deviations             []volume.Difference
}

// Verify compares the named volumes, or all that have a mirror, with their mirrors. It calls each
// for every directory that was read.
func Verify(ctx context.Context, c *control.Session, names []string, each func(Compared)) error {
	p, err := mirrors(ctx, c, names)
	if err != nil {
		return err
	}
	for _, h := range p.fleet.All {
		for _, d := range p.on[h.Name] {
			one := []apply.Directory{d}
			all, err := h.Volumes.Verify(ctx, one)
			if err != nil {
				return err
			}
			each(Compared{d.Mount.Volume, d.Name(), d.At(c.Dirs, p.site.Key()), d.Mirror, all[0]})
		}
	}
	return nil
}

// mirrors returns the directories of the session's site that have mirrors. If there are names, it
// returns only those of the named volumes.
func mirrors(ctx context.Context, c *control.Session, names []string) (*volumeDirs, error) {
	s, err := c.Load()
	if err != nil {
		return nil, err
	}
	if err := c.CheckAllowedOn(s); err != nil {
		return nil, err
	}
	if s.Twin != "" {
		return nil, problem.New(problem.Refused, "the volumes of a twin are not mirrored: they would overwrite those of %s",
			s.Name)
	}
	f, seen, err := observeHosts(ctx, c, s)
	if err != nil {
		return nil, err
	}
	p, err := findVolumeDirs(c, s, f, seen)
	if err != nil {
		return nil, err
	}
	some := false
	for on, of := range p.on {
		seen := map[string]bool{}
		p.on[on] = slices.DeleteFunc(of, func(d apply.Directory) bool {
			again := seen[d.Mirror]
			seen[d.Mirror] = true
			return again || d.Mirror == "" || len(names) > 0 && names[0] != d.Mount.Volume
		})
		some = some || len(p.on[on]) > 0
	}
	if !some {
		what := "no volume that a node uses has a mirror"
		if len(names) > 0 {
			what = "volume " + names[0] + " has no mirror, or no node uses it"
		}
		return nil, problem.New(problem.Usage, "%s", what).At("site.toml").
			Try(`set [volume.NAME] mirror = "user@host:/directory"`)
	}
	return p, nil
}

// observeHosts returns the hosts of a site. If there are several, it also returns what was observed on
// them. A single host is not observed, so that a volume is mirrored whatever else is wrong there.
func observeHosts(ctx context.Context, c *control.Session, s *site.Site) (*apply.Fleet, []observe.Host, error) {
	f, err := c.Hosts(ctx, s)
	if err != nil || len(f.All)+len(f.Unknown) == 1 {
		return f, nil, err
	}
	seen, err := c.Observe(ctx, f)
	return f, seen, err
}
