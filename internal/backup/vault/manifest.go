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

// Format is the version of all that is written; it is in every manifest and beside the blocks. A
// backup of several hosts has one of its own: who does not know of hosts must not restore it.
const (
	Format      = 1
	FormatHosts = 2
)

// A Manifest says what is in a backup. It is written last: a backup without one is none.
type Manifest struct {
	Format int `json:"format"`
	// by which it is ordered, if not by Time; it must stand here: see orderIn
	Order      time.Time               `json:"order,omitzero"`
	Site       string                  `json:"site"`
	Key        string                  `json:"key"`            // what its host kept it under
	Twin       string                  `json:"twin,omitempty"` // of which it is
	Production bool                    `json:"production,omitempty"`
	Time       time.Time               `json:"time"`
	Host       string                  `json:"host"` // that it was on
	By         string                  `json:"by"`   // version of the program
	Who        string                  `json:"who"`
	Nodes      bounded[nodedir.Record] `json:"nodes"`
	Partial    bool                    `json:"partial,omitempty"` // not all nodes of the site are in it
	// that the nodes stand on: recipes, contents, package versions
	Layers   bounded[image.Record] `json:"layers"`
	Trees    bounded[Tree]         `json:"trees"`
	Releases json.RawMessage       `json:"releases,omitempty"` // the host's releases.json
	Secrets  *Sealed               `json:"secrets,omitempty"`
	Left     bounded[string]       `json:"left,omitempty"`  // what is not in it, and why
	Pause    float64               `json:"pause,omitempty"` // seconds for which the nodes stood still
	Hosts    bounded[Host]         `json:"hosts,omitempty"` // of a site on several
}

// A Host is one of those that a site was on.
type Host struct {
	Name    string `json:"name"`
	Missing bool   `json:"missing,omitempty"` // what it had is not in the backup
}

// Kinds of trees.
const (
	SiteTree     = "site"     // the site directory
	LayerTree    = "layer"    // of the store: with --with-layers
	PrivateTree  = "private"  // what a node wrote outside volumes
	VolumeTree   = "volume"   // the data of a volume
	ReleaseTree  = "release"  // what the host keeps of a release
	SnapshotTree = "snapshot" // with --snapshots
)

// A Tree is a directory as it was.
type Tree struct {
	Name    string  `json:"name"` // of all trees in the backup
	Kind    string  `json:"kind"`
	Node    string  `json:"node,omitempty"`   // of a private layer or volume; a volume that all share has the name of none
	ID      int     `json:"id,omitempty"`     // of the node
	Volume  string  `json:"volume,omitempty"` // name
	Path    string  `json:"path,omitempty"`   // directory of the host that the site file names for the volume
	Layer   string  `json:"layer,omitempty"`  // digest of the recipe
	Number  int     `json:"number,omitempty"` // of the release
	Host    string  `json:"host,omitempty"`   // that had it, of a site on several; what all of them have is of none
	Entries int     `json:"entries"`
	Bytes   int64   `json:"bytes"`
	List    digests `json:"list"` // pieces of the list of entries
}

// Title names a tree for people.
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

// Tree returns a tree by name.
func (m *Manifest) Tree(name string) (*Tree, bool) {
	for i := range m.Trees {
		if m.Trees[i].Name == name {
			return &m.Trees[i], true
		}
	}
	return nil, false
}

// Missing returns the hosts that had a part of the site which is not in the backup.
func (m *Manifest) Missing() (names []string) {
	for _, h := range m.Hosts {
		if h.Missing {
			names = append(names, h.Name)
		}
	}
	return names
}

// Bytes is how much all trees have in them.
func (m *Manifest) Bytes() (sum int64) {
	for _, t := range m.Trees {
		sum += t.Bytes
	}
	return sum
}

// spell writes a manifest, and gives it a name with the time and its digest in it.
func spell(m *Manifest) (text []byte, id string, err error) {
	text, err = json.MarshalIndent(m, "", " ")
	if err != nil {
		return nil, "", err
	}
	text = append(text, '\n')
	if len(text) > MaxManifestBytes {
		return nil, "", problem.New(problem.Unable,
			"the site is too large for one backup: what is in it takes %d MiB to tell", len(text)>>20).
			Try("choose some of the nodes")
	}
	return text, nameOf(m, text), nil
}

func nameOf(m *Manifest, text []byte) string {
	return m.Time.UTC().Format(nameTime) + "-" + digestOf(text).String()[:16]
}

// MaxManifestBytes bounds a manifest; that of 32 nodes has half a MiB.
const MaxManifestBytes = 64 << 20

// manifestName is that of a manifest's file: the time of the backup, and half a digest.
var manifestName = pattern.New(`^[0-9]{8}-[0-9]{6}-[0-9a-f]{16}\.json$`)

func isManifest(name string) bool { return manifestName().MatchString(name) }

// understand reads a manifest, which must be what its name says.
func understand(v Whereabouts, id string, text []byte) (*Manifest, error) {
	m := &Manifest{}
	err := json.Unmarshal(text, m)
	if err == nil && m.Format != Format && m.Format != FormatHosts {
		return nil, problem.New(problem.Unable, "backup %s is of format %d; this Orrery reads formats %d and %d", id,
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

// manifests are those of the backups in a repository.
type manifests struct{ *directory }

// Backups returns the names of the backups, in the order in which they were taken.
func (all manifests) Backups() ([]string, error) {
	ids, err := all.names()
	all.order(ids)
	return ids, err
}

// names returns the names of the backups, in no order.
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

// Manifest reads what a backup has in it.
func (all manifests) Manifest(id string) (*Manifest, error) {
	missing := problem.New(problem.Usage, "there is no backup %s", id).At(all.dir).Try("orrery backup ls %s", all.dir)
	if !isManifest(id + ".json") {
		return nil, missing
	}
	text, err := all.root.ReadFile("backups/"+id+".json", MaxManifestBytes)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, missing
	}
	if err != nil {
		return nil, Damaged(all.directory, "backups/"+id+".json", problem.Reason(err))
	}
	return understand(all.directory, id, text)
}
