package vault

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"orrery/internal/image"
	"orrery/internal/observe"
	"orrery/internal/site"
	"orrery/internal/site/check"
	"orrery/internal/site/twin"
	"orrery/internal/text/pattern"
	"orrery/internal/text/sanitize"
)

// The author of a backup is not trusted. All names in a backup are checked by the same rules as
// those of a site file before they are used. The destination of a tree is derived from its kind and
// these names.

// Check returns an error if the manifest cannot be that of a site's backup.
func (m *Manifest) Check() error {
	if !check.ValidLabel(m.Site) {
		return InvalidName("site", m.Site)
	}
	if m.Twin != "" {
		if err := twin.ValidName(m.Twin); err != nil {
			return err
		}
	}
	if s := (site.Site{Name: m.Site, Twin: m.Twin}); m.Key != s.Key() {
		return InvalidName("key", m.Key)
	}
	for _, text := range append([]string{m.Host, m.By, m.Who}, m.Left...) {
		if sanitize.Line(text) != text {
			return InvalidName("text", text)
		}
	}
	for i := range m.Nodes {
		n := &m.Nodes[i].Node
		if !check.ValidLabel(n.Name) || n.ID <= 0 || !image.IsDigest(n.Base) || !allDigests(n.Below) || n.Layer != "" &&
			!image.IsDigest(n.Layer) || n.Kernel != "" && !image.IsDigest(n.Kernel) {
			return InvalidName("node", n.Name)
		}
	}
	for i := range m.Layers {
		l := &m.Layers[i]
		if !image.IsDigest(l.Digest) || l.Base != "" && !image.IsDigest(l.Base) || !allDigests(l.Below) ||
			sanitize.Line(l.Title) != l.Title {
			return InvalidName("layer", l.Digest)
		}
	}
	hosts, err := m.hosts()
	if err != nil {
		return err
	}
	names := map[string]bool{}
	for i := range m.Trees {
		t := &m.Trees[i]
		if name, ok := t.derived(); !ok || t.Name != name || names[name] || t.Bytes < 0 || t.Host != "" && !hosts[t.Host] {
			return InvalidName("tree", t.Name)
		}
		names[t.Name] = true
	}
	_, err = m.ReadReleases()
	return err
}

// hosts returns the hosts of the backup, and whether their parts are in it.
func (m *Manifest) hosts() (map[string]bool, error) {
	if (len(m.Hosts) > 0) != (m.Format == FormatHosts) {
		return nil, InvalidName("format", strconv.Itoa(m.Format))
	}
	all, seen := map[string]bool{}, map[string]bool{}
	for _, h := range m.Hosts {
		if !check.ValidLabel(h.Name) || seen[h.Name] {
			return nil, InvalidName("host", h.Name)
		}
		seen[h.Name], all[h.Name] = true, !h.Missing
	}
	return all, nil
}

// allDigests reports whether all names are digests of layers.
func allDigests(names []string) bool {
	return !slices.ContainsFunc(names, func(name string) bool { return !image.IsDigest(name) })
}

// InvalidName returns the error for a name that no backup can contain.
func InvalidName(what, name string) error {
	return fmt.Errorf("invalid %s %q", what, name)
}

const maxRelease = 9999

// derived returns the name of a tree that follows from its kind and its other fields, or false if
// there is no such tree.
func (t *Tree) derived() (name string, ok bool) {
	switch t.Kind {
	case SiteTree:
		return "site", true
	case ExtendedTree:
		return ExtendedTree, true
	case PrivateTree:
		return "private/" + strconv.Itoa(t.ID), t.ID > 0 && check.ValidLabel(t.Node)
	case VolumeTree:
		name = "volume/" + t.Volume
		if t.Node != "" {
			name += "/" + t.Node
		}
		return name, check.ValidFileName(t.Volume) && (t.Node == "" || check.ValidLabel(t.Node)) &&
			(t.Path == "" || validPath(t.Path))
	case ReleaseTree:
		return "release/" + strconv.Itoa(t.Number), t.Number > 0 && t.Number <= maxRelease
	case SnapshotTree:
		name = "snapshot/" + t.SnapshotName()
		if t.Host != "" { // each host has its part
			name += "/" + t.Host
		}
		return name, check.ValidFileName(t.SnapshotName())
	case LayerTree:
		return "layer/" + t.Layer, image.IsDigest(t.Layer)
	}
	return "", false
}

// SnapshotName returns the name of the snapshot to which a tree belongs.
func (t *Tree) SnapshotName() string {
	name := strings.TrimPrefix(t.Name, "snapshot/")
	if t.Host != "" {
		name = strings.TrimSuffix(name, "/"+t.Host)
	}
	return name
}

// validPath reports whether a site file may name this path for a volume.
func validPath(path string) bool {
	return filepath.IsAbs(path) && filepath.Clean(path) == path && path != "/" && sanitize.Line(path) == path
}

// ReadReleases parses the host's record of releases.
func (m *Manifest) ReadReleases() (observe.Releases, error) {
	var r observe.Releases
	if len(m.Releases) == 0 {
		return r, nil
	}
	if err := json.Unmarshal(m.Releases, &r); err != nil {
		return r, err
	}
	for node, number := range r.Active {
		if !check.ValidLabel(node) || number < 0 || number > maxRelease {
			return r, InvalidName("release of node", node)
		}
	}
	for _, number := range r.Confirmed {
		if number < 0 || number > maxRelease {
			return r, InvalidName("release", strconv.Itoa(number))
		}
	}
	if r.Ended != nil {
		r.Ended.Why, r.Ended.Result = sanitize.Text(r.Ended.Why), sanitize.Line(r.Ended.Result)
	}
	return r, nil
}

// hostKeyFile matches the files of a node's SSH host keys.
var hostKeyFile = pattern.New(`^ssh_host_[a-z0-9_]+(\.pub)?$`)

// IsHostKey reports whether a file name is that of an SSH host key.
func IsHostKey(name string) bool { return hostKeyFile().MatchString(name) }

// isSecret reports whether a path is that of a secret: secrets/NAME, secrets/NAME@NODE,
// keys/NODE/ssh_host_TYPE_key[.pub], keys/known_hosts or AuthorityPath.
func isSecret(path string) bool {
	parts := strings.Split(path, "/")
	switch {
	case len(parts) == 2 && parts[0] == "secrets":
		name, node, own := strings.Cut(parts[1], "@")
		return check.ValidFileName(name) && (!own || check.ValidLabel(node))
	case len(parts) == 3 && parts[0] == "keys":
		return check.ValidLabel(parts[1]) && IsHostKey(parts[2])
	}
	return path == "keys/known_hosts" || path == AuthorityPath
}

// AuthorityPath is the path of the site's certificate authority, which is on the control host.
const AuthorityPath = "keys/authority.pem"
