package ferry

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"orrery/internal/backup/vault"
	"orrery/internal/engine/nodedir"
	"orrery/internal/site/spec"
	"orrery/internal/snapshot"
	"orrery/internal/treesync"
	"orrery/internal/volume"
)

// kept returns a host's part of a snapshot, of some nodes with a volume each, and of a volume that
// all share.
func kept(nodes ...*nodedir.Record) *snapshot.Snapshot {
	s := &snapshot.Snapshot{ID: "x", Site: "karoo", Hosts: []string{"sv1", "sv2"}}
	for _, n := range nodes {
		s.Nodes = append(s.Nodes, snapshot.Node{Record: n})
		s.Volumes = append(s.Volumes, snapshot.Volume{Name: "own", Node: n.Name})
	}
	s.Volumes = append(s.Volumes, snapshot.Volume{Name: "both", Node: volume.SharedDir})
	return s
}

func node(name string, id int) *nodedir.Record {
	return &nodedir.Record{Node: spec.Node{Name: name, ID: id,
		Mounts: []spec.Mount{{Volume: "own"}, {Volume: "both", Shared: true}}}}
}

// A bound is a backup with snapshots that is being written.
type bound struct {
	*testing.T
	into vault.Vault
	pack *vault.Packer
	m    *vault.Manifest
}

// add adds a host's part, with the given paths.
func (b *bound) add(host string, snap *snapshot.Snapshot, paths ...string) {
	b.Helper()
	text, err := json.Marshal(snap)
	if err != nil {
		b.Fatal(err)
	}
	entries := []vault.Entry{{Entry: treesync.Entry{Name: ".", Mode: 0o40700}}}
	for _, path := range append(paths, snapshotFile) {
		e := vault.Entry{Entry: treesync.Entry{Name: treesync.Name(path), Mode: 0o40700}}
		if first, same, links := strings.Cut(path, "="); links {
			e = vault.Entry{Entry: treesync.Entry{Name: treesync.Name(first), Mode: 0o100600, Same: treesync.Name(same)}}
		}
		if path == snapshotFile {
			d, err := b.pack.Add(text)
			if err != nil {
				b.Fatal(err)
			}
			e = vault.Entry{Entry: treesync.Entry{Name: snapshotFile, Mode: 0o100600, Size: int64(len(text))},
				Data: []vault.Extent{{Size: int64(len(text)), Pieces: []vault.Digest{d}}}}
		}
		entries = append(entries, e)
	}
	slices.SortStableFunc(entries, func(a, b vault.Entry) int { return strings.Compare(string(a.Name), string(b.Name)) })
	list, err := vault.WriteList(entries)
	if err != nil {
		b.Fatal(err)
	}
	t := vault.Tree{Name: "snapshot/x/" + host, Kind: vault.SnapshotTree, Host: host}
	if t.List, err = b.pack.AddAll(list); err != nil {
		b.Fatal(err)
	}
	b.m.Trees = append(b.m.Trees, t)
}

func newBound(t *testing.T) *bound {
	t.Helper()
	into, err := vault.Write(filepath.Join(t.TempDir(), "backups") + "/")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { into.Close() }) //nolint:errcheck // of a test
	return &bound{t, into, vault.NewPacker(into), &vault.Manifest{Key: "karoo"}}
}

func (b *bound) shelf(homes map[string]string) (*SnapshotSet, error) {
	b.Helper()
	if err := b.pack.Close(); err != nil {
		b.Fatal(err)
	}
	return OpenSnapshotSet(vault.NewPieces(b.into), b.m, func(node string, _ int, kept string) string {
		if kept == "sv3" && node != "c" {
			return "" // that host does not have these nodes any more
		}
		return homes[node]
	})
}

// gets returns what a host gets of the snapshot.
func (b *bound) gets(s *SnapshotSet, host string) (paths []string, snap *snapshot.Snapshot, err error) {
	b.Helper()
	l, err := s.Of(host)
	if err != nil || len(l.Trees) == 0 {
		return nil, nil, err
	}
	err = l.Each(&l.Trees[0], func(e *vault.Entry) error {
		paths = append(paths, string(e.Name))
		if e.Name == snapshotFile {
			text, err := l.Get(e.Data[0].Pieces[0])
			if err != nil {
				return err
			}
			snap = &snapshot.Snapshot{}
			return json.Unmarshal(text, snap)
		}
		return nil
	})
	return paths, snap, err
}

// TestShelf: each host gets the data of its nodes in a snapshot, whichever host has stored it, in
// order, and nothing else.
func TestShelf(t *testing.T) {
	b := newBound(t)
	b.add("sv1", kept(node("a", 1), node("b", 12)), "nodes", "nodes/1", "nodes/1/upper", "nodes/12", "nodes/12/upper",
		"other", "volumes", "volumes/both", "volumes/both/@all", "volumes/both/@all/sv1",
		"volumes/own", "volumes/own/a", "volumes/own/b")
	b.add("sv2", kept(node("c", 11)), "nodes", "nodes/11", "nodes/11/upper", "nodes/12", "nodes/12/stolen", "volumes",
		"volumes/both", "volumes/both/@all", "volumes/both/@all/sv2", "volumes/own", "volumes/own/a", "volumes/own/c")
	b.add("sv3", kept(node("a", 1)), "nodes", "nodes/1", "nodes/1/evil")
	s, err := b.shelf(map[string]string{"a": "sv1", "b": "sv2", "c": "sv1"})
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Stray["x"]; !slices.Equal(got, []string{"a"}) {
		t.Errorf("astray are %v", got)
	}
	for host, want := range map[string]string{
		"sv1": ". nodes nodes/1 nodes/1/upper nodes/11 nodes/11/upper snapshot.json volumes volumes/both volumes/both/@all volumes/both/@all/sv2 volumes/own volumes/own/a volumes/own/c",
		"sv2": ". nodes nodes/12 nodes/12/upper snapshot.json volumes volumes/both volumes/both/@all volumes/both/@all/sv1 volumes/own volumes/own/b",
		"sv3": "",
	} {
		paths, snap, err := b.gets(s, host)
		if got := strings.Join(paths, " "); err != nil || got != want {
			t.Errorf("%s gets %s: %v", host, got, err)
		}
		if snap != nil && (!slices.Equal(snap.Hosts, []string{"sv1", "sv2"}) ||
			len(snap.Nodes) != strings.Count(want, " nodes/")/2 || len(snap.Volumes) != len(snap.Nodes)+1) {
			t.Errorf("%s is told %+v", host, snap)
		}
	}
}

// TestHostileShelf: an invalid snapshot is sent to no host, and the error names the host from which
// it came.
func TestHostileShelf(t *testing.T) {
	for what, add := range map[string]func(b *bound){
		"another name":  func(b *bound) { s := kept(node("a", 1)); s.ID = "y"; b.add("sv1", s) },
		"another site":  func(b *bound) { s := kept(node("a", 1)); s.Site = "y"; b.add("sv1", s) },
		"no node":       func(b *bound) { b.add("sv1", kept(&nodedir.Record{})) },
		"a path":        func(b *bound) { b.add("sv1", kept(node("../a", 1))) },
		"escapes":       func(b *bound) { s := kept(node("a", 1)); s.Who = "\x1b[2J"; b.add("sv1", s) },
		"not even text": func(b *bound) { b.add("sv1", nil) },
		"another's file": func(b *bound) {
			b.add("sv1", kept(node("a", 1), node("b", 2)), "nodes", "nodes/1", "nodes/1/f=nodes/2/f", "nodes/2")
		},
	} {
		b := newBound(t)
		add(b)
		s, err := b.shelf(map[string]string{"a": "sv1", "b": "sv2"})
		if err == nil {
			_, _, err = b.gets(s, "sv1")
		}
		if err == nil || !strings.Contains(err.Error(), "snapshot/x/sv1") || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: %v", what, err)
		}
	}
}
