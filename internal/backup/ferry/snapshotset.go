package ferry

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"iter"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/backup"
	"orrery/internal/backup/vault"
	"orrery/internal/snapshot"
	"orrery/internal/strict/jsonlimit"
	"orrery/internal/tree"
	"orrery/internal/treesync"
	"orrery/internal/volume"
)

// A SnapshotSet is the snapshots in a backup of several hosts. Each snapshot has a part from each host,
// with that host's nodes. When a backup is restored, nodes may be on other hosts. Then each host
// gets one part, with the nodes that it has.
type SnapshotSet struct {
	from  *vault.Pieces
	books map[string][]*part  // by the ids of snapshots
	Stray map[string][]string // names of nodes in them that no host gets
}

// A part is one host's part of a snapshot.
type part struct {
	tree *vault.Tree
	is   *snapshot.Snapshot
	// hosts, by the directories in the part that they get: nodes/ID, volumes/NAME/NODE
	to map[string]string
}

// maxDescriptionBytes limits the size of snapshot.json.
const maxDescriptionBytes = 32 << 20

// OpenSnapshotSet reads the descriptions of the snapshots in a backup. Home returns the host that gets a
// node that was on host kept, or "" if none does.
func OpenSnapshotSet(from *vault.Pieces, m *vault.Manifest,
	home func(node string, id int, kept string) string) (*SnapshotSet,
	error) {
	s := &SnapshotSet{from: from, books: map[string][]*part{}, Stray: map[string][]string{}}
	for i := range m.Trees {
		t := &m.Trees[i]
		if t.Kind != vault.SnapshotTree {
			continue
		}
		id := t.SnapshotName()
		snap, err := s.read(t)
		if err == nil {
			err = backup.ValidateSnapshot(snap, id, m.Key)
		}
		if err != nil {
			return nil, from.Damaged(t.Name, err)
		}
		p := &part{tree: t, is: snap, to: map[string]string{}}
		s.assign(p, home)
		s.books[id] = append(s.books[id], p)
	}
	return s, nil
}

// read reads the description of a part.
func (s *SnapshotSet) read(t *vault.Tree) (*snapshot.Snapshot, error) {
	var text []byte
	err := s.from.Each(t, func(e *vault.Entry) error {
		if e.Name != snapshotFile {
			return nil
		}
		if !e.IsFile() || e.Size > maxDescriptionBytes {
			return vault.ErrBounds
		}
		text = make([]byte, e.Size)
		for _, x := range e.Data {
			at := x.At
			for _, d := range x.Pieces {
				content, err := s.from.Get(d)
				if err != nil {
					return err
				}
				if at < 0 || at > e.Size {
					return vault.ErrBounds
				}
				at += int64(copy(text[at:], content))
			}
		}
		return vault.ErrStop
	})
	if err != nil && !errors.Is(err, vault.ErrStop) {
		return nil, err
	}
	snap := &snapshot.Snapshot{}
	return snap, jsonlimit.Unmarshal(text, snap)
}

const snapshotFile = "snapshot.json"

// assign sets which hosts get the directories of a part. A volume that nodes share goes with the
// nodes.
func (s *SnapshotSet) assign(p *part, home func(node string, id int, kept string) string) {
	nodes, shares := map[string]string{}, map[string]string{}
	for _, n := range p.is.Nodes {
		to := home(n.Record.Name, n.Record.ID, p.tree.Host)
		if to == "" {
			s.Stray[p.is.ID] = append(s.Stray[p.is.ID], n.Record.Name)
			continue
		}
		p.to["nodes/"+strconv.Itoa(n.Record.ID)] = to
		nodes[n.Record.Name] = to
		for _, m := range n.Record.Mounts {
			if m.Shared {
				shares[m.Volume] = to
			}
		}
	}
	for _, v := range p.is.Volumes {
		to := nodes[v.Node]
		if v.Node == volume.SharedDir {
			to = shares[v.Name]
		}
		if at := path.Join("volumes", v.Name, v.Node); to != "" && !s.has(p.is.ID, at, to) {
			p.to[at] = to
		}
	}
}

// has reports whether a host already gets a directory of a snapshot from another part.
func (s *SnapshotSet) has(id, at, host string) bool {
	return slices.ContainsFunc(s.books[id], func(p *part) bool { return p.to[at] == host })
}

// hosts returns the hosts that get nodes of a snapshot.
func (s *SnapshotSet) hosts(id string) []string {
	all := map[string]bool{}
	for _, p := range s.books[id] {
		for at, to := range p.to {
			if strings.HasPrefix(at, "nodes/") {
				all[to] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(all))
}

// A HostContents is the content of a backup, with the snapshots as one host gets them.
type HostContents struct {
	*vault.Pieces
	Trees []vault.Tree // of snapshots

	host  string
	parts map[string][]*part      // the parts of which the snapshots consist, by tree name
	files map[string]*vault.Entry // the descriptions of the snapshots, by tree name
	texts map[vault.Digest][]byte
}

// Of returns what a host gets.
func (s *SnapshotSet) Of(host string) (*HostContents, error) {
	l := &HostContents{Pieces: s.from, host: host, parts: map[string][]*part{}, files: map[string]*vault.Entry{},
		texts: map[vault.Digest][]byte{}}
	for _, id := range slices.Sorted(maps.Keys(s.books)) {
		on := s.hosts(id)
		if !slices.Contains(on, host) {
			continue
		}
		t := vault.Tree{Name: "snapshot/" + id, Kind: vault.SnapshotTree}
		var one *snapshot.Snapshot
		for _, p := range s.books[id] {
			if slices.Contains(slices.Collect(maps.Values(p.to)), host) {
				l.parts[t.Name] = append(l.parts[t.Name], p)
				t.List = append(t.List, p.tree.List...)
				one = p.join(one, host)
			}
		}
		one.Hosts = on
		if err := l.describe(t.Name, one); err != nil {
			return nil, err
		}
		l.Trees = append(l.Trees, t)
	}
	return l, nil
}

// join adds what a host gets of a part to what it gets of others.
func (p *part) join(with *snapshot.Snapshot, host string) *snapshot.Snapshot {
	if with == nil {
		one := *p.is
		one.Nodes, one.Volumes, one.Omitted, one.Left = nil, nil, nil, nil
		with = &one
	}
	for _, n := range p.is.Nodes {
		if p.to["nodes/"+strconv.Itoa(n.Record.ID)] == host {
			with.Nodes = append(with.Nodes, n)
		}
	}
	for _, v := range p.is.Volumes {
		if p.to[path.Join("volumes", v.Name, v.Node)] == host {
			with.Volumes = append(with.Volumes, v)
		}
	}
	with.Omitted, with.Left = slices.Concat(with.Omitted, p.is.Omitted), slices.Concat(with.Left, p.is.Left)
	with.Pause, with.Skew, with.Seconds = max(with.Pause, p.is.Pause), max(with.Skew, p.is.Skew),
		max(with.Seconds, p.is.Seconds)
	return with
}

// describe writes the description of a snapshot for its new host.
func (l *HostContents) describe(name string, s *snapshot.Snapshot) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	e := &vault.Entry{Entry: treesync.Entry{Name: snapshotFile, Mode: unix.S_IFREG | 0o600, Time: s.Time.UnixNano(),
		Size: int64(len(text))}}
	x := vault.Extent{Size: e.Size}
	for piece := range slices.Chunk(text, vault.PieceSize) {
		d := vault.Digest(sha256.Sum256(piece))
		l.texts[d] = bytes.Clone(piece)
		x.Pieces = append(x.Pieces, d)
	}
	e.Data = []vault.Extent{x}
	l.files[name] = e
	return nil
}

// Get returns the content of a piece.
func (l *HostContents) Get(d vault.Digest) ([]byte, error) {
	if text, ok := l.texts[d]; ok {
		return text, nil
	}
	return l.Pieces.Get(d)
}

// Each parses the entries of a tree. For a snapshot, it merges the entries that the host gets from
// all parts, in their order.
func (l *HostContents) Each(t *vault.Tree, visit func(*vault.Entry) error) error {
	parts, ok := l.parts[t.Name]
	if !ok {
		return l.Pieces.Each(t, visit)
	}
	last := ""
	return l.merge(parts, func(e *vault.Entry) error {
		name := string(e.Name)
		if name == last { // a directory of which several parts have something
			return nil
		}
		last = name
		if name == snapshotFile {
			e = l.files[t.Name]
		}
		return visit(e)
	})
}

// merge merges several parts into one tree.
func (l *HostContents) merge(parts []*part, visit func(*vault.Entry) error) error {
	var err error
	type reading struct {
		next func() (*vault.Entry, bool)
		e    *vault.Entry
	}
	var all []*reading
	for _, p := range parts {
		next, stop := iter.Pull(func(yield func(*vault.Entry) bool) {
			wrong := l.Pieces.Each(p.tree, func(e *vault.Entry) error {
				wanted, err := p.includes(e, l.host)
				switch {
				case err != nil:
					return l.Damaged(p.tree.Name+"/"+tree.DisplayPath(string(e.Name)), err)
				case wanted && !yield(e):
					return vault.ErrStop
				}
				return nil
			})
			if wrong != nil && !errors.Is(wrong, vault.ErrStop) && err == nil {
				err = wrong
			}
		})
		defer stop()
		r := &reading{next: next}
		if e, more := next(); more {
			r.e, all = e, append(all, r)
		}
	}
	for len(all) > 0 && err == nil {
		first := all[0]
		for _, r := range all[1:] {
			if r.e.Name != first.e.Name && tree.PathLess(string(r.e.Name), string(first.e.Name)) {
				first = r
			}
		}
		if wrong := visit(first.e); wrong != nil {
			return wrong
		}
		var more bool
		if first.e, more = first.next(); !more {
			all = slices.DeleteFunc(all, func(r *reading) bool { return r == first })
		}
	}
	return err
}

// includes reports whether a host gets an entry of a part, because it is in one of the host's
// directories or a parent of one.
func (p *part) includes(e *vault.Entry, host string) (bool, error) {
	name := string(e.Name)
	if name == "." || name == snapshotFile {
		return true, nil
	}
	words, deep := strings.SplitN(name, "/", 4), 2
	if words[0] == "volumes" {
		deep = 3
	}
	if len(words) < deep { // a parent of several directories
		for at, to := range p.to {
			if to == host && strings.HasPrefix(at, name+"/") {
				return true, nil
			}
		}
		return false, nil
	}
	at := strings.Join(words[:deep], "/")
	if p.to[at] == host && e.Same != "" && !strings.HasPrefix(string(e.Same), at+"/") {
		return false, errors.New("a file in it is a hard link to a file of another node")
	}
	return p.to[at] == host, nil
}
