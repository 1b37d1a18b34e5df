// Package volumes has the operations on the volumes of a site's nodes, and on their mirrors.
package volumes

import (
	"cmp"
	"context"
	"slices"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/control/hosts"
	"orrery/internal/observe"
	"orrery/internal/plan/orphan"
	"orrery/internal/plan/place"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/text/humanize"
	"orrery/internal/volume"
)

// A Row is one directory of a volume.
type Row struct {
	Host   string               `json:"host,omitempty"` // if the site has several hosts
	Volume string               `json:"volume"`
	Node   string               `json:"node"`
	Path   string               `json:"path"`
	Size   volume.Size          `json:"size"`
	There  bool                 `json:"there"`
	Mirror string               `json:"mirror,omitempty"`
	Last   *volume.MirrorStatus `json:"last,omitempty"`
	Next   time.Time            `json:"next,omitzero"`
	// why nothing mirrors it at intervals, although the site file says so
	Idle   string `json:"idle,omitempty"`
	Orphan bool   `json:"orphan,omitempty"` // no node uses it
}

// List returns the volumes of a site. The volumes that no node uses any more come last in the rows.
// They are also returned as orphans, in the form that a plan has.
func List(ctx context.Context, c *control.Session) ([]Row, []orphan.Orphan, error) {
	s, err := c.Load()
	if err != nil {
		return nil, nil, err
	}
	if err := c.CheckAllowedOn(s); err != nil {
		return nil, nil, err
	}
	f, _, err := control.SelectedHosts(ctx, c, s, nil)
	if err != nil {
		return nil, nil, err
	}
	seen, err := c.Observe(ctx, f)
	if err != nil {
		return nil, nil, err
	}
	p, err := findVolumeDirs(c, s, f, seen)
	if err != nil {
		return nil, nil, err
	}
	rows := []Row{}
	told := map[string]bool{}
	for _, h := range f.All {
		some, err := p.rows(ctx, h)
		if err != nil {
			return nil, nil, err
		}
		for _, r := range some {
			if key := r.Host + ":" + r.Path; !told[key] {
				told[key] = true
				rows = append(rows, r)
			}
		}
	}
	var orphans []orphan.Orphan
	for i, h := range f.All {
		gone := orphan.All(s, &seen[i], f.Views().Releases())
		some, err := p.unusedRows(ctx, h, gone)
		if err != nil {
			return nil, nil, err
		}
		rows, orphans = append(rows, some...), append(orphans, gone...)
	}
	return rows, orphans, nil
}

// volumeDirs are the directories of a site's volumes, by host.
type volumeDirs struct {
	site  *site.Site
	fleet *apply.Fleet
	on    map[string][]apply.Directory
}

// findVolumeDirs returns the directories that nodes use or would use. It leaves out nodes that may be on an
// unknown host. Seen is needed only for sites with several hosts.
func findVolumeDirs(c *control.Session, s *site.Site, f *apply.Fleet, seen []observe.Host) (*volumeDirs, error) {
	p := &volumeDirs{site: s, fleet: f, on: map[string][]apply.Directory{}}
	if len(f.Unknown) > 0 {
		c.Watcher.Event(control.Event{Kind: control.Notice, Site: s.Key(),
			Text: "volumes on host " + humanize.List(f.Unknown, 12) + " are left out"})
	}
	alone, placed := len(f.All) == 1 && len(f.Unknown) == 0, s
	if !alone {
		var err error
		if placed, err = place.Assign(s, seen); err != nil {
			return nil, err
		}
	}
	all, err := volume.Mirrors(c.Dirs, s)
	if err != nil {
		return nil, err
	}
	of, err := hosts.Directories(s, all)
	if err != nil {
		return nil, err
	}
	for i := range s.Nodes {
		on := placed.Nodes[i].Host
		if alone {
			on = f.All[0].Name
		}
		p.on[on] = append(p.on[on], of[i]...)
	}
	return p, nil
}

// WithMirror returns the names of the volumes of a site that have a mirror.
func WithMirror(c *control.Session, s *site.Site) []string {
	all, _ := volume.Mirrors(c.Dirs, s) // the error is reported when volumes are mirrored
	var names []string
	for _, m := range all {
		names = append(names, m.Volume)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// host returns the name of a host, or "" if the site has only one.
func (p *volumeDirs) host(h *apply.HostClient) string {
	if len(p.site.Hosts) < 2 {
		return ""
	}
	return h.Name
}

// rows describes the directories on a host that nodes use.
func (p *volumeDirs) rows(ctx context.Context, h *apply.HostClient) ([]Row, error) {
	of := p.on[h.Name]
	if len(of) == 0 {
		return nil, nil
	}
	all, err := h.Volumes.Describe(ctx, of)
	if err != nil {
		return nil, err
	}
	rows := make([]Row, len(of))
	for i, d := range of {
		r := Row{Host: p.host(h), Volume: d.Mount.Volume, Node: d.Name(), Path: all[i].Path, Size: all[i].Size,
			There: all[i].There, Mirror: d.Mirror}
		if d.Mirror != "" {
			r.Last = all[i].Last
		}
		r.Next, r.Idle = all[i].Next, all[i].Idle
		rows[i] = r
	}
	return rows, nil
}

// unusedRows describes the directories on a host that no node uses.
func (p *volumeDirs) unusedRows(ctx context.Context, h *apply.HostClient, gone []orphan.Orphan) ([]Row, error) {
	if len(gone) == 0 {
		return nil, nil
	}
	of := make([]apply.Directory, len(gone))
	for i, o := range gone {
		of[i] = apply.Directory{Node: o.Node, Mount: spec.Mount{Volume: o.Volume}, Path: o.Path}
	}
	all, err := h.Volumes.Describe(ctx, of)
	if err != nil {
		return nil, err
	}
	rows := make([]Row, len(gone))
	for i, o := range gone {
		rows[i] = Row{Host: p.host(h), Volume: o.Volume, Node: cmp.Or(o.Node, volume.SharedDir), Path: o.Path,
			Size: all[i].Size, There: all[i].There, Orphan: true}
	}
	return rows, nil
}
