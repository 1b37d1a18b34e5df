package volumes

import (
	"context"
	"errors"
	"time"

	"orrery/internal/control"
	"orrery/internal/hook"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/volume"
)

// Mirrored is how the mirror of a volume was brought up to date.
type Mirrored = volume.Mirrored

// MirrorOptions say what is mirrored, and how.
type MirrorOptions struct {
	Names    []string // of volumes; none: all that have a mirror
	Contents bool     // contents are compared, instead of sizes and times
}

// Mirror brings mirrors up to date. Each is told of when it has been.
func Mirror(ctx context.Context, c *control.Session, o MirrorOptions, each func(Mirrored)) error {
	s, chosen, err := mirrors(c, o.Names)
	if err != nil {
		return err
	}
	lock, err := volume.LockMirrors(c.Dirs, s.Key(), c.Holder())
	if err != nil {
		return err
	}
	defer lock.Release()
	bring := volume.Mirror.Run
	if o.Contents {
		bring = volume.Mirror.Mend
	}
	for _, m := range chosen {
		made := Mirrored{Volume: m.Volume, Node: m.Node, To: m.To, At: time.Now()}
		sent, failed := bring(m, ctx)
		made.Bytes, made.Seconds = sent, time.Since(made.At).Seconds()
		if failed != nil {
			made.Problem = failed.Error()
			c.Tell(s, hook.Event{Event: site.MirrorFailed, Result: "failed", Why: made.Problem, Volume: m.Volume, Node: m.Node})
		} else {
			each(made)
		}
		err = errors.Join(err, failed)
		err = errors.Join(err, made.Note(c.Dirs, s.Key()))
	}
	return err
}

// Compared is a directory of a volume, and what of it is not as in its mirror.
type Compared struct {
	Volume, Node, From, To string
	Deviations             []volume.Deviation
}

// Verify compares volumes, those of these names or all that have a mirror, with their mirrors. Each is told of when it has been read.
func Verify(ctx context.Context, c *control.Session, names []string, each func(Compared)) error {
	_, chosen, err := mirrors(c, names)
	if err != nil {
		return err
	}
	for _, m := range chosen {
		all, err := m.Verify(ctx)
		if err != nil {
			return err
		}
		each(Compared{m.Volume, m.Node, m.From, m.To, all})
	}
	return nil
}

// mirrors gives the site that is meant, and those of its mirrors whose volumes are named, or all.
func mirrors(c *control.Session, names []string) (*site.Site, []volume.Mirror, error) {
	if err := c.Allowed(); err != nil {
		return nil, nil, err
	}
	s, err := c.Load()
	if err != nil {
		return nil, nil, err
	}
	if s.Twin != "" {
		return nil, nil, problem.New(problem.Refused, "the volumes of a twin are not mirrored: they would overwrite those of %s", s.Name)
	}
	all, err := c.Mirrors(s)
	if err != nil {
		return nil, nil, err
	}
	var chosen []volume.Mirror
	for _, m := range all {
		if len(names) == 0 || names[0] == m.Volume {
			chosen = append(chosen, m)
		}
	}
	if len(chosen) == 0 {
		what := "no volume that a node uses"
		if len(names) > 0 {
			what = "volume " + names[0] + ", if a node uses it,"
		}
		return nil, nil, problem.New(problem.Usage, "%s has no mirror", what).At("site.toml").Try(`say [volume.NAME] mirror = "user@host:/directory"`)
	}
	return s, chosen, nil
}
