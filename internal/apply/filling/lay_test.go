package filling

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/apply"
	"orrery/internal/host"
	"orrery/internal/host/twins"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/site/twin"
	"orrery/internal/treesync"
)

// laid sends a directory as the volume of a node, under the name of a tree, and returns the error
// of Receive.
func laid(t *testing.T, dirs host.Dirs, tree string, d apply.Directory, from string) error {
	return treesync.Pipe(t.Context(), func(way io.ReadWriter) error { return sent(t.Context(), way, tree, from) },
		func(way io.ReadWriter) error { return Receive(dirs, "s.dev", d, way) })
}

func sent(ctx context.Context, way io.ReadWriter, tree, from string) error {
	along, err := treesync.NewStream(way)
	if err == nil {
		_, err = new(treesync.Sender).Send(ctx, along, []treesync.Source{{Name: tree, Dir: from}}, true)
	}
	return err
}

// untaken is a stream from which nothing may be read.
type untaken struct{ t *testing.T }

func (u untaken) Read([]byte) (int, error) {
	u.t.Error("something is taken in that has no place")
	return 0, io.EOF
}

func (u untaken) Write(b []byte) (int, error) { return len(b), nil }

// TestLayRefuses: a volume that the twin cannot have is refused with a reason, before anything is
// read.
func TestLayRefuses(t *testing.T) {
	dirs := host.Dirs{State: t.TempDir()}
	data := spec.Mount{Volume: "data"}
	refused := func(says string, d apply.Directory) {
		t.Helper()
		if err := Receive(dirs, "s.dev", d, untaken{t}); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("it is said %v, and not %q", err, says)
		}
	}
	refused("twin s.dev has no record", apply.Directory{Node: "db", Mount: data})
	filled := twin.Record{Site: "s", Volumes: "/fill.sh", Options: twin.Options{Name: "dev"}, Filled: true}
	for _, r := range []twin.Record{filled, {Site: "s", Volumes: site.CopySnapshot, Options: filled.Options},
		{Site: "s", Volumes: site.CopyEmpty, Options: filled.Options}} {
		if err := twins.Write(dirs, r); err != nil {
			t.Fatal(err)
		}
		refused("the record of twin s.dev declares no program that fills its volumes", apply.Directory{Node: "db", Mount: data})
	}
	if err := twins.Write(dirs, twin.Record{Site: "s", Volumes: "/fill.sh", Options: filled.Options}); err != nil {
		t.Fatal(err)
	}
	refused("is not a private volume of a node of a twin", apply.Directory{Node: "..", Mount: data})
	refused("is not a private volume of a node of a twin", apply.Directory{Node: "db", Mount: spec.Mount{Volume: "data", Shared: true}})
	if err := os.MkdirAll(filepath.Join(dirs.Volumes("s.dev"), "data", "db"), 0o700); err != nil {
		t.Fatal(err)
	}
	refused("already exists", apply.Directory{Node: "db", Mount: data})
}

// TestLay: received data becomes a volume that belongs to the twin alone and does not exist yet,
// and nothing else. Data that does not arrive completely leaves nothing.
func TestLay(t *testing.T) {
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	state, from := t.TempDir(), t.TempDir()
	dirs := host.Dirs{State: state}
	must(os.WriteFile(filepath.Join(from, "rows"), []byte("1"), 0o640))
	data := spec.Mount{Volume: "data"}
	good := apply.Directory{Node: "db", Mount: data}
	if err := laid(t, dirs, Tree, good, from); err == nil {
		t.Error("there is no twin, and it is laid down")
	}
	r := twin.Record{Site: "s", Volumes: "/fill.sh", Options: twin.Options{Name: "dev"}}
	for _, wrong := range []func(*twin.Record){
		func(r *twin.Record) { r.Filled = true },
		func(r *twin.Record) { r.Volumes = "empty" },
		func(r *twin.Record) { r.Volumes = "snapshot" },
	} {
		record := r
		wrong(&record)
		must(twins.Write(dirs, record))
		if err := laid(t, dirs, Tree, good, from); err == nil {
			t.Errorf("the record is %+v, and it is laid down", record)
		}
	}
	must(twins.Write(dirs, r))
	for what, d := range map[string]apply.Directory{
		"above":     {Node: "..", Mount: data},
		"elsewhere": {Node: "db", Mount: spec.Mount{Volume: "../../keys"}},
		"a path":    {Node: "db", Mount: data, Path: filepath.Join(state, "there")},
		"a source":  {Node: "db", Mount: spec.Mount{Volume: "data", Source: filepath.Join(state, "there")}},
		"a copy":    {Node: "db", Mount: spec.Mount{Volume: "data", Copy: "x"}},
		"nfs":       {Node: "db", Mount: spec.Mount{Volume: "data", Remote: site.Remote{NFS: "server:/x"}}},
		"shared":    {Node: "db", Mount: spec.Mount{Volume: "data", Shared: true}},
		"none":      {},
	} {
		if err := laid(t, dirs, Tree, d, from); err == nil {
			t.Errorf("%s: it is laid down", what)
		}
	}
	if err := laid(t, dirs, "private", good, from); err == nil {
		t.Error("another tree is laid down")
	}
	cut := treesync.Pipe(t.Context(), func(way io.ReadWriter) error {
		_, err := treesync.NewStream(way)
		return err // and ends
	}, func(way io.ReadWriter) error { return Receive(dirs, "s.dev", good, way) })
	if cut == nil {
		t.Error("nothing came, and it is laid down")
	}
	if entries, _ := os.ReadDir(dirs.Volumes("s.dev")); len(entries) > 0 {
		t.Errorf("there is %v", entries)
	}
	must(laid(t, dirs, Tree, good, from))
	if text, err := os.ReadFile(filepath.Join(dirs.Volumes("s.dev"), "data", "db", "rows")); err != nil ||
		string(text) != "1" {
		t.Errorf("it has %q, %v", text, err)
	}
	if err := laid(t, dirs, Tree, good, from); err == nil {
		t.Error("it is laid down over what is there")
	}
	if left, _ := os.ReadDir(dirs.Arrivals("s.dev")); len(left) > 0 {
		t.Errorf("left is %v", left)
	}
}
