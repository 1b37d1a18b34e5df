package vault

import (
	"encoding/json"
	"errors"
	"io/fs"
	"strings"
	"time"

	"orrery/internal/engine/nodedir"
	"orrery/internal/image"
	"orrery/internal/problem"
	"orrery/internal/text/pattern"
)

// Format is the version of all files. It is in every manifest and in the file orrery-backup. A
// backup of several hosts has a version of its own, because programs that do not know of hosts must
// not restore it.
const (
	Format      = 1
	FormatHosts = 2
)

// A Manifest describes a backup. It is written last: a backup without a manifest is incomplete.
type Manifest struct {
	Format int `json:"format"`
	// the time by which it is ordered, if not by Time; must be the second field (orderIn)
	Order      time.Time               `json:"order,omitzero"`
	Site       string                  `json:"site"`
	Key        string                  `json:"key"`            // the site's key on its host
	Twin       string                  `json:"twin,omitempty"` // the name of the twin, or "" if the site is none
	Production bool                    `json:"production,omitempty"`
	Time       time.Time               `json:"time"`
	Host       string                  `json:"host"` // the host of the site
	By         string                  `json:"by"`   // version of the program
	Who        string                  `json:"who"`
	Nodes      bounded[nodedir.Record] `json:"nodes"`
	Partial    bool                    `json:"partial,omitempty"` // not all nodes of the site are in the backup
	// layers of the nodes: recipes, contents, package versions
	Layers   bounded[image.Record] `json:"layers"`
	Trees    bounded[Tree]         `json:"trees"`
	Releases json.RawMessage       `json:"releases,omitempty"` // the host's releases.json
	Secrets  *Sealed               `json:"secrets,omitempty"`
	Left     bounded[string]       `json:"left,omitempty"`  // what is not in the backup, and why
	Pause    float64               `json:"pause,omitempty"` // seconds for which the nodes were frozen
	Hosts    bounded[Host]         `json:"hosts,omitempty"` // of a site on several hosts
}

// A Host is a host of the site.
type Host struct {
	Name    string `json:"name"`
	Missing bool   `json:"missing,omitempty"` // its part is not in the backup
}

// The kinds of trees.
const (
	SiteTree     = "site"     // the site directory
	LayerTree    = "layer"    // of the store: with --with-layers
	PrivateTree  = "private"  // what a node wrote outside volumes
	VolumeTree   = "volume"   // the data of a volume
	ReleaseTree  = "release"  // what the host keeps of a release
	SnapshotTree = "snapshot" // with --snapshots
	ExtendedTree = "extended" // what the site has from the site directories that it extends
)

// A Tree is the stored state of a directory.
type Tree struct {
	Name   string `json:"name"` // unique in the backup
	Kind   string `json:"kind"`
	Node   string `json:"node,omitempty"`   // of a private layer or volume; "" for a volume that all nodes share
	ID     int    `json:"id,omitempty"`     // the id of the node
	Volume string `json:"volume,omitempty"` // the name of the volume
	Path   string `json:"path,omitempty"`   // directory of the host that the site file names for the volume
	Layer  string `json:"layer,omitempty"`  // digest of the recipe
	Number int    `json:"number,omitempty"` // of the release
	// the host that had it, for a site on several hosts; "" for what all hosts have
	Host    string  `json:"host,omitempty"`
	Entries int     `json:"entries"`
	Bytes   int64   `json:"bytes"`
	List    digests `json:"list"` // pieces of the list of entries
}

// Title returns a name of the tree for users.
func (t *Tree) Title() string {
	switch {
	case t.Kind == PrivateTree:
		return "node " + t.Node
	case t.Kind == VolumeTree && t.Node != "":
		return "volume " + t.Volume + " of " + t.Node
	case t.Kind == VolumeTree:
		return "volume " + t.Volume
	}
	return t.Name
}

// Tree returns the tree called name, or false.
func (m *Manifest) Tree(name string) (*Tree, bool) {
	for i := range m.Trees {
		if m.Trees[i].Name == name {
			return &m.Trees[i], true
		}
	}
	return nil, false
}

// Missing returns the hosts whose part of the site is not in the backup.
func (m *Manifest) Missing() (names []string) {
	for _, h := range m.Hosts {
		if h.Missing {
			names = append(names, h.Name)
		}
	}
	return names
}

// Bytes returns the total size of all trees.
func (m *Manifest) Bytes() (sum int64) {
	for _, t := range m.Trees {
		sum += t.Bytes
	}
	return sum
}

// encodeManifest encodes a manifest, and returns a name for it that consists of the time and the digest.
func encodeManifest(m *Manifest) (text []byte, id string, err error) {
	text, err = json.MarshalIndent(m, "", " ")
	if err != nil {
		return nil, "", err
	}
	text = append(text, '\n')
	if len(text) > MaxManifestBytes {
		return nil, "", problem.New(problem.Unable,
			"the site is too large for one backup: its manifest has %d MiB", len(text)>>20).
			Try("choose some of the nodes")
	}
	return text, nameOf(m, text), nil
}

func nameOf(m *Manifest, text []byte) string {
	return m.Time.UTC().Format(nameTimeLayout) + "-" + digestOf(text).String()[:16]
}

// MaxManifestBytes limits a manifest. That of 32 nodes has half a MiB.
const MaxManifestBytes = 64 << 20

// manifestName matches the name of a manifest's file: the time of the backup, and half a digest.
var manifestName = pattern.New(`^[0-9]{8}-[0-9]{6}-[0-9a-f]{16}\.json$`)

func isManifest(name string) bool { return manifestName().MatchString(name) }

// decodeManifest parses a manifest, which must match its name.
func decodeManifest(v Location, id string, text []byte) (*Manifest, error) {
	m := &Manifest{}
	err := json.Unmarshal(text, m)
	if err == nil && m.Format != Format && m.Format != FormatHosts {
		return nil, problem.New(problem.Unable, "backup %s has format %d; this Orrery reads formats %d and %d", id,
			m.Format, Format, FormatHosts).At(v.Where())
	}
	if err == nil && nameOf(m, text) != id {
		err = errDigest
	}
	if err == nil {
		err = m.Check()
	}
	if err != nil {
		return nil, Damaged(v, "backups/"+id+".json", err)
	}
	return m, nil
}

// manifests are the manifests of the backups in a repository.
type manifests struct{ *directory }

// Backups returns the names of the backups, in the order in which they were taken.
func (all manifests) Backups() ([]string, error) {
	ids, err := all.names()
	all.order(ids)
	return ids, err
}

// names returns the names of the backups in no particular order.
func (all manifests) names() ([]string, error) {
	names, err := all.root.Names("backups", MaxNames)
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	var ids []string
	for _, name := range names {
		if isManifest(name) {
			ids = append(ids, strings.TrimSuffix(name, ".json"))
		}
	}
	return ids, err
}

// Manifest returns the manifest of a backup.
func (all manifests) Manifest(id string) (*Manifest, error) {
	missing := problem.New(problem.Usage, "backup %s does not exist", id).At(all.dir).
		Try("list them with orrery backup ls %s", all.dir)
	if !isManifest(id + ".json") {
		return nil, missing
	}
	text, err := all.root.ReadFile("backups/"+id+".json", MaxManifestBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing
	}
	if err != nil {
		return nil, Damaged(all.directory, "backups/"+id+".json", problem.PathErrorCause(err))
	}
	return decodeManifest(all.directory, id, text)
}
