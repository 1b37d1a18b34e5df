package backup

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"orrery/internal/backup/vault"
	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/snapshot"
	"orrery/internal/treesync"
)

// layers is an engine with private layers.
type layers struct {
	engine.Engine
	dirs host.Dirs
}

func (l layers) nodes() *nodedir.Nodes                { return &nodedir.Nodes{Dirs: l.dirs} }
func (l layers) Private(ref engine.Ref) string        { return l.nodes().Private(ref) }
func (l layers) Fill(ref engine.Ref, at string) error { return l.nodes().Fill(ref, at) }

// standing returns a node on this host with some data, and a backup in which it had other data.
func standing(t *testing.T) (e layers, here *nodedir.Record, p *Extractor) {
	t.Helper()
	f := forgeArchive(t)
	removed := vault.Entry{Entry: treesync.Entry{Name: "removed", Mode: unix.S_IFCHR | 0o600}}
	setuid := f.file("setuid", "#!")
	setuid.Mode |= unix.S_ISUID
	ssh := vault.Entry{Entry: treesync.Entry{Name: "ssh", Mode: unix.S_IFDIR | 0o755, Uid: uint32(os.Geteuid()),
		Gid: uint32(os.Getegid())}}
	f.tree(vault.Tree{Name: "private/1", Kind: vault.PrivateTree, Node: "n", ID: 1}, f.file("kept", "then"), removed,
		setuid, ssh)
	f.tree(vault.Tree{Name: "volume/data/n", Kind: vault.VolumeTree, Volume: "data", Node: "n"},
		f.file("rows", "rows of then"))
	f.tree(vault.Tree{Name: "volume/inner", Kind: vault.VolumeTree, Volume: "inner"}, f.file("x", "shared"))
	f.tree(vault.Tree{Name: "volume/open/n", Kind: vault.VolumeTree, Volume: "open", Node: "n"}, setuid)
	where, _ := f.done()
	p = pickOf(t, where)
	p.Manifest.Nodes = []nodedir.Record{{Node: spec.Node{Name: "n", ID: 1, Site: "s", Engine: "fake", Layer: "of then"},
		Configured: true}}

	e.dirs = host.Dirs{State: t.TempDir(), Run: t.TempDir()}
	must(t, os.Chmod(e.dirs.State, 0o711))
	open := t.TempDir()
	must(t, errors.Join(os.Chmod(open, 0o755), os.Chmod(filepath.Dir(open), 0o755)))
	here = &nodedir.Record{Node: spec.Node{Name: "n", ID: 4, Site: "s", Engine: "fake", Layer: "of now",
		Mounts: []spec.Mount{
			{Volume: "data"}, {Volume: "inner", Shared: true}, {Volume: "open", Source: open},
			{Volume: "far", Remote: site.Remote{NFS: "server:/far"}}, {Volume: "new"},
		}}}
	must(t, os.MkdirAll(filepath.Join(e.Private(engine.RefOf(&here.Node)), "etc/ssh"), 0o755))
	must(t, os.WriteFile(filepath.Join(e.Private(engine.RefOf(&here.Node)), "etc/ssh/ssh_host_ed25519_key"),
		[]byte("of here"), 0o600))
	return e, here, p
}

// TestSnapshotOfNode: the backup of one node becomes a snapshot that is restored with the current
// layers and keys of the node.
func TestSnapshotOfNode(t *testing.T) {
	e, here, p := standing(t)
	s, err := p.Snapshot(t.Context(), e.dirs, "s", "n-then", here, e)
	must(t, err)
	if got := strings.Join(s.Omitted,
		"; "); got != "inner: other nodes use it, too; far: it is on an NFS server; new: it is not in the backup" {
		t.Errorf("left alone are %s", got)
	}
	kept, err := snapshot.Open(e.dirs, "s", "n-then")
	must(t, err)
	if len(kept.Nodes) != 1 || len(kept.Volumes) != 2 {
		t.Fatalf("%d nodes, %d volumes", len(kept.Nodes), len(kept.Volumes))
	}
	n := kept.Nodes[0]
	if !n.Running || n.Record.ID != 4 || n.Record.Layer != "of now" || !n.Record.Configured {
		t.Errorf("%+v", n.Record)
	}
	for name, want := range map[string]string{
		"nodes/4/upper/kept": "then", "nodes/4/upper/etc/ssh/ssh_host_ed25519_key": "of here",
		"volumes/data/n/rows": "rows of then",
	} {
		if text, err := os.ReadFile(filepath.Join(kept.Dir, name)); string(text) != want {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	info, err := os.Stat(filepath.Join(kept.Dir, "volumes/open/n/setuid"))
	must(t, err)
	if info.Mode()&os.ModeSetuid != 0 {
		t.Error("users of the host could run a program with set-user-ID of the backup")
	}
	again, err := p.Snapshot(t.Context(), e.dirs, "s", "n-then", here, e)
	must(t, err)
	if again.Dir != s.Dir {
		t.Errorf("what was laid down is at %s, and again at %s", s.Dir, again.Dir)
	}
}

// TestNoSnapshotOfDamaged: if the backup of a node is damaged, nothing is staged.
func TestNoSnapshotOfDamaged(t *testing.T) {
	e, here, p := standing(t)
	tree, _ := p.Manifest.Tree("volume/data/n")
	tree.List[0][0] ^= 1
	if _, err := p.Snapshot(t.Context(), e.dirs, "s", "n-then", here, e); problem.ExitCode(err) != int(problem.Failed) {
		t.Error(err)
	}
	if left, _ := os.ReadDir(e.dirs.Snapshots("s")); len(left) > 0 {
		t.Errorf("left are %v", left)
	}
	here.Release = 701
	if _, err := p.Snapshot(t.Context(), e.dirs, "s", "n-then", here, e); problem.ExitCode(err) != int(problem.Surprise) {
		t.Errorf("of another release: %v", err)
	}
	here.Name = "m"
	if _, err := p.Snapshot(t.Context(), e.dirs, "s", "m-then", here, e); problem.ExitCode(err) != int(problem.Usage) {
		t.Error(err)
	}
}
