// Package backup backs up and restores whole sites.
//
// A backup has the site's files, private layers and volumes, and the layers or their recipes. A
// Selection says what to back up: a Source for each directory. A Backup reads the sources into a vault twice:
// while the nodes run, and what has changed since then while they are frozen. A Repair verifies a
// vault and restores what it lacks from wherever it still exists.
//
// A Restore may be killed at any moment. Stage stores all trees in a staging directory, and records
// how far it has come. From then on it is a Part, which OpenPart returns: the former site is taken
// down; Place moves directories to their places; Fill gives each node its private layer when the
// engine has created the node. A SiteDir is the site directory of a backup. An Extractor extracts one
// file or node from a backup and changes no site.
//
// Package vault stores the content.
package backup

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"orrery/internal/backup/vault"
	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/sitefile"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
	"orrery/internal/volume"
)

// A Selection selects the parts of a site on this host to back up.
type Selection struct {
	Site    *site.Site
	Dir     string // the site directory, if this machine has the vault
	Dirs    host.Dirs
	Engines map[string]engine.Engine
	Store   *image.Store
	Nodes   map[string]bool // names of nodes, or nil for all
	Target  string          // the path of the backup, which may be in the site directory

	WithLayers, WithSnapshots bool
	// digests of the layers to include, because other hosts send the others, or nil for all
	Layers map[string]bool
}

// A Source is a directory to back up, without some of its files.
type Source struct {
	Tree   vault.Tree
	Dir    string
	Skip   func(path string) bool // reports whether a path is left out with everything below it, or nil
	Bound  int64                  // maximum total size of the files, or 0 for no limit
	Moving bool                   // nodes write there
}

// maxSiteDirBytes limits the size of a site directory. It may contain an image to import, but not data.
const maxSiteDirBytes = 1 << 30

// sources returns all directories to back up, the records of the nodes, and what is left out.
func (s *Selection) sources() (all []Source, nodes []nodedir.Record, left []string, err error) {
	key := s.Site.Key()
	if nodes, left, err = s.records(); err != nil {
		return nil, nil, nil, err
	}
	for i := range nodes {
		dir, err := s.private(&nodes[i])
		if err != nil {
			return nil, nil, nil, err
		}
		all = append(all, Source{
			Tree: vault.Tree{Name: "private/" + strconv.Itoa(nodes[i].ID), Kind: vault.PrivateTree, Node: nodes[i].Name,
				ID: nodes[i].ID},
			Dir: dir, Skip: hostKey, Moving: true,
		})
	}
	volumes, more, err := s.volumes(nodes)
	if err != nil {
		return nil, nil, nil, err
	}
	all, left = append(all, volumes...), append(left, more...)
	if s.WithSnapshots {
		for _, dir := range below(filepath.Join(s.Dirs.Site(key), "snapshots")) {
			all = append(all, Source{
				Tree: vault.Tree{Name: "snapshot/" + filepath.Base(dir), Kind: vault.SnapshotTree}, Dir: dir,
				Skip: omittedFromSnapshot,
			})
		}
	}
	if s.WithLayers {
		for _, digest := range layersOf(nodes) {
			if s.Layers != nil && !s.Layers[digest] {
				continue
			}
			all = append(all, Source{Tree: vault.Tree{Name: "layer/" + digest, Kind: vault.LayerTree, Layer: digest},
				Dir: s.Store.Tree(digest)})
		}
	}
	return all, nodes, left, nil
}

// siteDir returns the site directory as a source.
func (s *Selection) siteDir() Source {
	return Source{Tree: vault.Tree{Name: "site", Kind: vault.SiteTree}, Dir: s.Dir, Skip: s.omitted(),
		Bound: maxSiteDirBytes}
}

// Extended returns as a source a copy of what the site has from the site directories that it extends.
func Extended(dir string) Source {
	return Source{Tree: vault.Tree{Name: vault.ExtendedTree, Kind: vault.ExtendedTree}, Dir: dir, Bound: maxSiteDirBytes}
}

// records returns the records of the nodes.
func (s *Selection) records() (nodes []nodedir.Record, left []string, err error) {
	found, err := nodedir.All(s.Dirs, s.Site.Key())
	if err != nil {
		return nil, nil, err
	}
	for _, f := range found {
		switch {
		case s.Nodes != nil && !s.Nodes[f.Record.Name]:
		case !f.Whole:
			left = append(left, fmt.Sprintf("node %d is incomplete: orrery up creates it again", f.Record.ID))
		default:
			nodes = append(nodes, *f.Record)
		}
	}
	return nodes, left, nil
}

func (s *Selection) private(r *nodedir.Record) (string, error) {
	layered, ok := s.Engines[r.Engine].(engine.Layered)
	if !ok {
		return "", problem.New(problem.Unable, "node %s: the engine %q cannot back up what the node wrote",
			r.Name, r.Engine).
			Try("choose nodes of other engines")
	}
	return layered.Private(engine.RefOf(&r.Node)), nil
}

// hostKey reports whether a path of a private layer is an SSH host key. Host keys are secrets: they
// are stored encrypted or generated again.
func hostKey(path string) bool { return strings.HasPrefix(path, "etc/ssh/ssh_host_") }

// omittedFromSnapshot reports whether a path of a snapshot is left out: host keys, and the memory of
// machines, which can be used only by the same machines on the same host.
func omittedFromSnapshot(path string) bool {
	memory, _ := filepath.Match("nodes/*/memory", path)
	return memory || strings.Contains(path, "/upper/etc/ssh/ssh_host_")
}

// omitted returns a function that reports whether a path of the site directory is left out: version
// control data, what is in an ExtendedTree, and the backup itself. Package sitefile makes sure that the
// directory has no secrets.
func (s *Selection) omitted() func(string) bool {
	target, err := filepath.Rel(s.Dir, s.Target)
	if err != nil || target == "." {
		target = ""
	}
	return func(path string) bool {
		return within(path, ".git", sitefile.KeptBase) || target != "" && within(path, target, target+".part")
	}
}

// volumes returns the directories of the nodes' volumes, and those that the host keeps for nodes
// that do not exist now.
func (s *Selection) volumes(nodes []nodedir.Record) (all []Source, left []string, err error) {
	seen := map[string]bool{}
	add := func(name, node, dir, path string) {
		if seen[dir] || !tree.Exists(dir) {
			return
		}
		seen[dir] = true
		tree := vault.Tree{Name: "volume/" + name, Kind: vault.VolumeTree, Volume: name, Node: node, Path: path}
		if node != "" {
			tree.Name += "/" + node
		}
		all = append(all, Source{Tree: tree, Dir: dir, Moving: true})
	}
	remote := map[string]bool{}
	for i := range nodes {
		n := &nodes[i]
		for _, m := range n.Mounts {
			switch {
			case m.Copy != "":
			case m.From().Left != "":
				if !remote[m.Volume] {
					left = append(left, fmt.Sprintf("volume %s: it is on a server, %s", m.Volume, m.Address()))
				}
				remote[m.Volume] = true
			default:
				add(m.Volume, owner(n, m), volume.Path(s.Dirs, s.Site.Key(), n.Name, m), m.Source)
			}
		}
	}
	if s.Nodes != nil {
		return all, left, nil
	}
	kept, err := volume.List(s.Dirs, s.Site.Key())
	for _, v := range kept {
		if !strings.HasPrefix(filepath.Base(v.Path), ".") {
			add(v.Name, v.Node, v.Path, "")
		}
	}
	return all, left, err
}

// owner returns the node that owns a volume, or "" if all nodes share it.
func owner(n *nodedir.Record, m spec.Mount) string {
	if m.Shared {
		return ""
	}
	return n.Name
}

// Release returns as a source the copy of the site directory from which a release was staged. It
// does not include the copies of volumes for a quarantine.
func Release(number int, dir string) Source {
	return Source{
		Tree: vault.Tree{Name: "release/" + strconv.Itoa(number), Kind: vault.ReleaseTree, Number: number}, Dir: dir,
		Skip: func(path string) bool { return within(path, "volumes", "site/.git") },
	}
}

// releases returns the copies of releases on this machine.
func (s *Selection) releases() (all []Source) {
	for _, dir := range below(s.Dirs.Releases(s.Site.Key())) {
		if number, err := strconv.Atoi(filepath.Base(dir)); err == nil {
			all = append(all, Release(number, dir))
		}
	}
	return all
}

// Secrets returns the secrets of the site.
func (s *Selection) Secrets() (vault.Secrets, error) {
	all := vault.Secrets{}
	key := s.Site.Key()
	if err := collect(all, "secrets", s.Dirs.Secrets(key)); err != nil {
		return nil, err
	}
	return all, collect(all, "keys", s.Dirs.Keys(key))
}

// layersOf returns the layers of nodes, each after the layers below it.
func layersOf(nodes []nodedir.Record) []string {
	depth := map[string]int{}
	for i := range nodes {
		layers := nodes[i].Layers()
		for at, digest := range layers {
			depth[digest] = len(layers) - at
		}
	}
	return slices.SortedFunc(maps.Keys(depth), func(a, b string) int {
		return cmp.Or(depth[a]-depth[b], strings.Compare(a, b))
	})
}

// below returns the subdirectories of a directory, sorted, without incomplete ones.
func below(dir string) []string {
	entries, _ := os.ReadDir(dir)
	var all []string
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") {
			all = append(all, filepath.Join(dir, e.Name()))
		}
	}
	return all
}

// collect adds the files of a directory of secrets to s.
func collect(s vault.Secrets, prefix, dir string) error {
	names, err := filepath.Glob(filepath.Join(dir, "*"))
	if err != nil {
		return err
	}
	deeper, err := filepath.Glob(filepath.Join(dir, "*", "*"))
	if err != nil {
		return err
	}
	for _, path := range append(names, deeper...) {
		info, err := os.Lstat(path)
		if err != nil || !info.Mode().IsRegular() {
			continue
		}
		if s[prefix+"/"+strings.TrimPrefix(path, dir+"/")], err = os.ReadFile(path); err != nil {
			return err
		}
	}
	return nil
}
