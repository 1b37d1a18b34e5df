package backup

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"testing"

	"golang.org/x/sys/unix"

	"orrery/internal/backup/vault"
	"orrery/internal/engine/nodedir"
	"orrery/internal/image"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
	"orrery/internal/treesync"
)

// seed writes a backup with one entry of each kind.
func seed(t testing.TB) (archive []byte, manifest []byte) {
	f := forgeArchive(t)
	dir := vault.Entry{Entry: treesync.Entry{Name: "dir", Mode: unix.S_IFDIR | 0o755, Uid: uint32(os.Geteuid()),
		Gid: uint32(os.Getegid())}}
	link := vault.Entry{Entry: treesync.Entry{Name: "link", Mode: unix.S_IFLNK | 0o777, Link: "/etc", Uid: dir.Uid,
		Gid: dir.Gid}}
	same := vault.Entry{Entry: treesync.Entry{Name: "same", Mode: unix.S_IFREG | 0o644, Same: "dir/file"}}
	f.tree(vault.Tree{Name: "site", Kind: vault.SiteTree}, dir, f.file("dir/file", "text"), link, same,
		f.file("site.toml", "[site]"))
	f.tree(vault.Tree{Name: "private/1", Kind: vault.PrivateTree, ID: 1, Node: "n"}, dir, f.file("dir/file", "text"), link)
	f.tree(vault.Tree{Name: "volume/v/n", Kind: vault.VolumeTree, Volume: "v", Node: "n"})
	f.tree(vault.Tree{Name: "release/7", Kind: vault.ReleaseTree, Number: 7}, f.file("release.json", "{}"))
	f.tree(vault.Tree{Name: "snapshot/one", Kind: vault.SnapshotTree}, f.file("snapshot.json", `{"id":"one","site":"s"}`))
	f.m.Nodes = []nodedir.Record{{Node: spec.Node{Site: "s", Name: "n", ID: 1, Base: "abc"}}}
	f.m.Layers = []image.Record{{Digest: "abc", Title: "base"}}
	f.m.Releases = json.RawMessage(`{"active":{"n":7},"confirmed":[7]}`)
	manifest, err := json.Marshal(&f.m)
	if err != nil {
		t.Fatal(err)
	}
	where, _ := f.done()
	if archive, err = os.ReadFile(where); err != nil {
		t.Fatal(err)
	}
	return archive, manifest
}

// try stages an arbitrary backup, as restore does. It must not change anything outside, or take
// much memory, and its error must be a problem.
func try(t *testing.T, where string) {
	dir, intact := yard(t)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := stage(t, where, dir)
	runtime.ReadMemStats(&after)
	if all := after.TotalAlloc - before.TotalAlloc; all > 1<<30 {
		t.Errorf("it took %d MiB of memory", all>>20)
	}
	var p *problem.Problem
	if err != nil && !errors.As(err, &p) && !errors.Is(err, errAsks) {
		t.Errorf("%T: %v", err, err)
	}
	intact()
}

// FuzzArchive: a file may contain arbitrary bytes.
func FuzzArchive(f *testing.F) {
	archive, _ := seed(f)
	f.Add(archive)
	f.Add(archive[:1024])
	f.Add(slices.Concat(archive[:1024], head(f, blockPath(vault.Digest{}), 1<<63-1)))
	f.Fuzz(func(t *testing.T, archive []byte) {
		path := filepath.Join(t.TempDir(), "file")
		must(t, os.WriteFile(path, archive, 0o600))
		try(t, path)
	})
}

// FuzzManifest: a manifest and the list of a tree may be arbitrary, with correct digests. LIST
// stands for the digest of the list, TEXT for that of an existing piece.
func FuzzManifest(f *testing.F) {
	_, manifest := seed(f)
	const list = `{"p":".","m":16877,"u":0,"g":0,"t":0}` + "\n" +
		`{"p":"file","m":33188,"u":0,"g":0,"t":0,"s":4,"c":[{"o":0,"n":4,"d":["TEXT"]}]}` + "\n"
	for _, kind := range []string{
		`"name":"site","kind":"site"`, `"name":"private/1","kind":"private","id":1,"node":"n"`,
		`"name":"volume/v","kind":"volume","volume":"v"`,
		`"name":"snapshot/a","kind":"snapshot"`, `"name":"release/1","kind":"release","number":1`,
		`"name":"layer/abc","kind":"layer","layer":"abc"`,
	} {
		f.Add([]byte(`{"format":1,"site":"s","key":"s","time":"1970-01-01T00:00:01Z","trees":[{`+kind+
			`,"list":["LIST"]}]}`), []byte(list))
	}
	f.Add(manifest, []byte(list))
	f.Add([]byte(`{"format":1,"site":"s","key":"s","time":"1970-01-01T00:00:01Z","trees":[{"name":"volume/v","kind":"volume","volume":"v","path":"/srv/x","list":["LIST"]}]}`),
		[]byte(`{"p":"../x","m":41471,"l":"/etc"}`))
	f.Fuzz(func(t *testing.T, manifest, list []byte) {
		path := filepath.Join(t.TempDir(), "file")
		v, err := vault.WriteArchive(path)
		must(t, err)
		pack := vault.NewPacker(v)
		text, err := pack.Add([]byte("text"))
		must(t, err)
		list = bytes.ReplaceAll(list, []byte("TEXT"), []byte(text.String()))
		pieces, err := pack.AddAll(list)
		must(t, errors.Join(err, pack.Close()))
		name := ""
		if len(pieces) > 0 {
			name = pieces[0].String()
		}
		manifest = bytes.ReplaceAll(manifest, []byte("LIST"), []byte(name))
		m := &vault.Manifest{}
		if json.Unmarshal(manifest, m) != nil {
			m = &vault.Manifest{}
		}
		id := m.Time.UTC().Format("20060102-150405") + "-" + vault.Digest(sha256.Sum256(manifest)).String()[:16]
		if m.Time.Year() < 0 || len(id) != len("19700101-000001-0123456789abcdef") {
			id = "19700101-000001-0123456789abcdef"
		}
		must(t, v.Close())
		file, err := os.OpenFile(path+".part", os.O_WRONLY|os.O_APPEND, 0)
		must(t, err)
		_, err = file.Write(slices.Concat(head(t, "backups/"+id+".json", int64(len(manifest))), manifest,
			make([]byte, (512-len(manifest)%512)%512+1024)))
		must(t, errors.Join(err, file.Close(), os.Rename(path+".part", path)))
		try(t, path)
	})
}
