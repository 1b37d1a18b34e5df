// Package volumes is what can be done with the persistent data of a site's nodes, and with its mirrors.
package volumes

import (
	"cmp"
	"context"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/plan/orphan"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/volume"
)

// A Row is one directory of a volume.
type Row struct {
	Volume string           `json:"volume"`
	Node   string           `json:"node"`
	Path   string           `json:"path"`
	Size   volume.Size      `json:"size"`
	There  bool             `json:"there"`
	Mirror string           `json:"mirror,omitempty"`
	Last   *volume.Mirrored `json:"last,omitempty"`
	Next   time.Time        `json:"next,omitzero"`
	Idle   string           `json:"idle,omitempty"`   // why nothing mirrors it by itself, although the site file says so
	Orphan bool             `json:"orphan,omitempty"` // no node uses it
}

// List gives the volumes of a site, those that no node uses any more last; these once more in the words of a plan.
func List(ctx context.Context, c *control.Session) ([]Row, []orphan.Orphan, error) {
	if err := c.Allowed(); err != nil {
		return nil, nil, err
	}
	s, h, _, err := c.Target(nil)
	if err != nil {
		return nil, nil, err
	}
	rows, err := used(ctx, c, s)
	if err != nil {
		return nil, nil, err
	}
	hosts, err := c.Seen(ctx, apply.Alone(h))
	if err != nil {
		return nil, nil, err
	}
	orphans := orphan.All(s, &hosts[0], h.Releases)
	for _, o := range orphans {
		r := Row{Volume: o.Volume, Node: cmp.Or(o.Node, volume.ForAll), Path: o.Path, Orphan: true}
		r.measure(ctx)
		rows = append(rows, r)
	}
	return rows, orphans, nil
}

// used gives the volumes that nodes use.
func used(ctx context.Context, c *control.Session, s *site.Site) ([]Row, error) {
	mirrors, err := c.Mirrors(s)
	if err != nil {
		return nil, err
	}
	went, err := volume.ReadMirrored(c.Dirs, s.Key())
	if err != nil {
		return nil, err
	}
	rows := []Row{}
	seen := map[string]bool{}
	maker := spec.NewMaker(s)
	for i := range s.Nodes {
		spelt, err := maker.Node(&s.Nodes[i])
		if err != nil {
			return nil, err
		}
		for _, m := range spelt.Mounts {
			r := Row{Volume: m.Volume, Node: spelt.Name, Path: volume.Path(c.Dirs, s.Key(), spelt.Name, m)}
			if seen[r.Path] {
				continue
			}
			seen[r.Path] = true
			if m.Shared {
				r.Node = volume.ForAll
			}
			r.measure(ctx)
			r.look(mirrors, went, s.Key())
			rows = append(rows, r)
		}
	}
	return rows, nil
}

func (r *Row) measure(ctx context.Context) {
	size, err := volume.SizeOf(ctx, r.Path)
	r.Size, r.There = size, err == nil
}

// look notes how the mirror of the directory is, if it has one.
func (r *Row) look(mirrors []volume.Mirror, went []volume.Mirrored, key string) {
	for _, m := range mirrors {
		if m.From != r.Path {
			continue
		}
		r.Mirror = m.To
		for _, w := range went {
			if w.Volume == m.Volume && w.Node == m.Node {
				r.Last = &w
			}
		}
		if m.Every == 0 {
			continue
		}
		var last time.Time
		if r.Last != nil {
			last = r.Last.At
		}
		r.Next, r.Idle = volume.NextRun(key, m.Volume, m.Every, last, time.Now())
	}
}
