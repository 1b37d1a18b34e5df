package backups

import (
	"fmt"
	"slices"
	"strings"

	"orrery/internal/apply"
	"orrery/internal/backup/ferry"
	"orrery/internal/backup/vault"
	"orrery/internal/engine/nodedir"
	"orrery/internal/observe"
	"orrery/internal/plan/place"
)

// place says on which host each node of the backup will be: where the site file says, else where it was, else where there is room.
func (r *restoring) place(seen []observe.Host) error {
	were := map[string]string{}
	for i := range r.manifest.Trees {
		if t := &r.manifest.Trees[i]; t.Kind == vault.PrivateTree {
			were[t.Node] = t.Host
		}
	}
	empty := slices.Clone(seen)
	for i := range empty {
		h := &empty[i]
		h.Nodes, h.Given, h.Arrivals, h.Restoring = nil, nil, nil, &observe.Restoring{}
		for node, host := range were {
			if host == h.Name && h.Drained == nil {
				h.Restoring.Nodes = append(h.Restoring.Nodes, node)
			}
		}
	}
	placed, err := place.Place(r.site, empty)
	if err != nil {
		return err
	}
	r.homes = map[string]string{}
	for i := range r.manifest.Nodes {
		r.homes[r.manifest.Nodes[i].Name] = r.only() // of another release, or not declared any more
	}
	for i := range placed.Nodes {
		r.homes[placed.Nodes[i].Name] = placed.Nodes[i].Host
	}
	return nil
}

// only returns the name of the host, if there is but one: all that is in the backup comes to it.
func (r *restoring) only() string {
	if len(r.fleet.All)+len(r.fleet.Unknown) > 1 {
		return ""
	}
	return r.fleet.All[0].Name
}

// home returns the host to which a tree comes; "": to none.
func (r *restoring) home(t *vault.Tree) string {
	if t.Node != "" {
		return r.homes[t.Node]
	}
	if one := r.only(); one != "" {
		return one
	}
	for i := range r.manifest.Nodes { // a volume is with those that share it
		n := &r.manifest.Nodes[i]
		for _, m := range n.Mounts {
			if m.Volume == t.Volume && m.Shared && r.homes[n.Name] != "" {
				return r.homes[n.Name]
			}
		}
	}
	if _, has := r.fleet.Host(t.Host); has && len(r.fleet.Unknown) == 0 {
		return t.Host
	}
	return ""
}

// parcel returns what a host gets: of what is there, nothing but the parts of its nodes.
func (r *restoring) parcel(h *apply.Steered, snapshots []vault.Tree) *ferry.Parcel {
	m := *r.manifest
	m.Key, m.Twin = r.key(), r.twin
	m.Format, m.Hosts, m.Trees, m.Nodes, m.Secrets, m.Releases, m.Left = vault.Format, nil, nil, nil, nil, r.releases, nil
	for i := range r.manifest.Nodes {
		if n := &r.manifest.Nodes[i]; r.homes[n.Name] == h.Name {
			m.Nodes = append(m.Nodes, *n)
		}
	}
	for _, t := range r.manifest.Trees {
		if t.Kind == vault.ReleaseTree && len(r.fleet.Unknown) == 0 {
			m.Trees = append(m.Trees, t)
		}
		if (t.Kind == vault.PrivateTree || t.Kind == vault.VolumeTree) && r.home(&t) == h.Name {
			t.Host = ""
			if r.twin != "" {
				t.Path = "" // it is kept with the host's state
			}
			m.Trees = append(m.Trees, t)
		}
	}
	records, trees := r.layers(m.Nodes)
	m.Layers, m.Trees = records, slices.Concat(m.Trees, trees, snapshots)
	p := &ferry.Parcel{ID: r.id, Title: r.again(), Manifest: &m, Replace: r.o.Replace, Was: r.was, Without: r.fleet.Unknown, Trust: r.o.TrustLayers}
	if r.secrets == nil {
		return p
	}
	p.Secrets = vault.Secrets{}
	for path, value := range r.secrets {
		name, generated := strings.CutPrefix(path, "secrets/")
		if r.only() != "" || generated && h.MayNeed(name) || !generated && slices.ContainsFunc(m.Nodes, func(n nodedir.Record) bool { return strings.HasPrefix(path, "keys/"+n.Name+"/") }) {
			p.Secrets[path] = value
		}
	}
	return p
}

// astray tells what of the backup comes to no host.
func (r *restoring) astray() {
	for i := range r.manifest.Trees {
		t := &r.manifest.Trees[i]
		if (t.Kind == vault.PrivateTree || t.Kind == vault.VolumeTree) && r.home(t) == "" && !slices.Contains(r.spared, t.Node) {
			why := "which the site no longer declares"
			if len(r.fleet.Unknown) > 0 {
				why = "which no node has that comes back"
			}
			r.notice("not restored: %s, %s", t.Title(), why)
		}
	}
	for _, name := range r.manifest.Missing() {
		r.notice("host %s was left out when the backup was taken: what was on it alone is not restored", name)
	}
}

// outside returns the directories beyond the state of hosts that volumes come to.
func (r *restoring) outside() (all []string) {
	for i := range r.manifest.Trees {
		if t := &r.manifest.Trees[i]; t.Kind == vault.VolumeTree && t.Path != "" && r.twin == "" {
			all = append(all, fmt.Sprintf("%s on host %s", t.Path, r.home(t)))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
