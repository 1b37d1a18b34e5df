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
	"orrery/internal/site"
	"orrery/internal/site/secretspec"
)

// placement are the hosts that receive the parts of a backup.
type placement struct {
	manifest *vault.Manifest
	fleet    *apply.Fleet
	nodes    map[string]string // node name to host name
}

// newPlacement chooses a host for each node of the backup: the one in the site file, else the former
// one, else one with free capacity.
func newPlacement(s *site.Site, m *vault.Manifest, f *apply.Fleet, seen []observe.Host) (*placement, error) {
	former := map[string]string{}
	for i := range m.Trees {
		if t := &m.Trees[i]; t.Kind == vault.PrivateTree {
			former[t.Node] = t.Host
		}
	}
	empty := slices.Clone(seen)
	for i := range empty {
		h := &empty[i]
		h.Nodes, h.OutgoingMoves, h.IncomingMoves, h.Restoring = nil, nil, nil, &observe.RestoreProgress{}
		for node, host := range former {
			if host == h.Name && h.Drained == nil {
				h.Restoring.Nodes = append(h.Restoring.Nodes, node)
			}
		}
	}
	placed, err := place.Assign(s, empty)
	if err != nil {
		return nil, err
	}
	all := &placement{m, f, map[string]string{}}
	for i := range m.Nodes {
		all.nodes[m.Nodes[i].Name] = all.onlyHost() // of another release, or no longer declared
	}
	for i := range placed.Nodes {
		all.nodes[placed.Nodes[i].Name] = placed.Nodes[i].Host
	}
	return all, nil
}

// onlyHost returns the name of the host if there is just one, which then receives everything in the
// backup. Otherwise it returns "".
func (h *placement) onlyHost() string {
	if len(h.fleet.All)+len(h.fleet.Unknown) > 1 {
		return ""
	}
	return h.fleet.All[0].Name
}

// hostFor returns the host that receives a tree, or "".
func (h *placement) hostFor(t *vault.Tree) string {
	if t.Node != "" {
		return h.nodes[t.Node]
	}
	if one := h.onlyHost(); one != "" {
		return one
	}
	for i := range h.manifest.Nodes { // a shared volume goes to the host of the nodes that share it
		n := &h.manifest.Nodes[i]
		for _, m := range n.Mounts {
			if m.Volume == t.Volume && m.Shared && h.nodes[n.Name] != "" {
				return h.nodes[n.Name]
			}
		}
	}
	if _, ok := h.fleet.Host(t.Host); ok && len(h.fleet.Unknown) == 0 {
		return t.Host
	}
	return ""
}

// partFor returns what a host receives: only the parts of its own nodes.
func (r *restoreRun) partFor(h *apply.HostClient, snapshots []vault.Tree) *ferry.RestorePart {
	m := *r.manifest
	m.Key, m.Twin = r.key(), r.twin
	m.Format, m.Hosts, m.Trees, m.Nodes, m.Secrets, m.Releases, m.Left = vault.Format, nil, nil, nil, nil, r.releases, nil
	for i := range r.manifest.Nodes {
		if n := &r.manifest.Nodes[i]; r.homes.nodes[n.Name] == h.Name {
			m.Nodes = append(m.Nodes, *n)
		}
	}
	for _, t := range r.manifest.Trees {
		if t.Kind == vault.ReleaseTree && len(r.fleet.Unknown) == 0 {
			m.Trees = append(m.Trees, t)
		}
		if (t.Kind == vault.PrivateTree || t.Kind == vault.VolumeTree) && r.homes.hostFor(&t) == h.Name {
			t.Host = ""
			if r.twin != "" {
				t.Path = "" // the twin's volume is stored in the host's state
			}
			m.Trees = append(m.Trees, t)
		}
	}
	records, trees := r.homes.layers(m.Nodes)
	m.Layers, m.Trees = records, slices.Concat(m.Trees, trees, snapshots)
	p := &ferry.RestorePart{ID: r.id, Title: r.retryArgument(), Manifest: &m, Replace: r.o.Replace, Was: r.was,
		Without: r.fleet.Unknown, Trust: r.o.TrustLayers}
	if r.secrets == nil {
		return p
	}
	p.Secrets = vault.Secrets{}
	for path, value := range r.secrets {
		name, generated := strings.CutPrefix(path, "secrets/")
		_, node := secretspec.Split(name)
		if r.homes.onlyHost() != "" || generated && node == "" && h.MayNeedSecret(name) ||
			generated && node != "" && r.homes.nodes[node] == h.Name || !generated &&
			slices.ContainsFunc(m.Nodes, func(n nodedir.Record) bool { return strings.HasPrefix(path, "keys/"+n.Name+"/") }) {
			p.Secrets[path] = value
		}
	}
	return p
}

// reportUnplaced reports what in the backup goes to no host.
func (r *restoreRun) reportUnplaced() {
	for i := range r.manifest.Trees {
		t := &r.manifest.Trees[i]
		if (t.Kind == vault.PrivateTree || t.Kind == vault.VolumeTree) && r.homes.hostFor(t) == "" &&
			!slices.Contains(r.spared, t.Node) {
			why := "which the site no longer declares"
			if len(r.fleet.Unknown) > 0 {
				why = "which no restored node uses"
			}
			r.notice("not restored: %s, %s", t.Title(), why)
		}
	}
	for _, name := range r.manifest.Missing() {
		r.notice("host %s was left out when the backup was taken: data that only it had is not restored", name)
	}
}

// outsideDirs returns the directories outside the hosts' state directories to which volumes are
// restored.
func (h *placement) outsideDirs() (all []string) {
	for i := range h.manifest.Trees {
		if t := &h.manifest.Trees[i]; t.Kind == vault.VolumeTree && t.Path != "" {
			all = append(all, fmt.Sprintf("%s on host %s", t.Path, h.hostFor(t)))
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}
