package backup

import (
	"archive/tar"
	"bytes"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/backup/vault"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
	"orrery/internal/treesync"
)

// A forger writes backups that Orrery would never write.
type forger struct {
	t    testing.TB
	into vault.Vault
	pack *vault.Packer
	m    vault.Manifest
}

func forge(t testing.TB, into vault.Vault) *forger {
	return &forger{t, into, vault.NewPacker(into),
		vault.Manifest{Format: vault.Format, Site: "s", Key: "s", Time: time.Unix(1, 0)}}
}

// forgeArchive starts a backup in a file.
func forgeArchive(t testing.TB) *forger {
	v, err := vault.WriteArchive(filepath.Join(t.TempDir(), "file"))
	if err != nil {
		t.Fatal(err)
	}
	return forge(t, v)
}

// tree adds a tree with its top and the given entries.
func (f *forger) tree(tree vault.Tree, entries ...vault.Entry) {
	f.t.Helper()
	text, err := vault.WriteList(
		append([]vault.Entry{{Entry: treesync.Entry{Name: ".", Mode: unix.S_IFDIR | 0o755, Uid: uint32(os.Geteuid()),
			Gid: uint32(os.Getegid())}}}, entries...))
	if err == nil {
		tree.List, err = f.pack.AddAll(text)
	}
	if err != nil {
		f.t.Fatal(err)
	}
	f.m.Trees = append(f.m.Trees, tree)
}

// file returns an entry of a file, whose content is packed.
func (f *forger) file(name, content string) vault.Entry {
	f.t.Helper()
	e := vault.Entry{Entry: treesync.Entry{Name: treesync.Name(name), Mode: unix.S_IFREG | 0o644,
		Uid: uint32(os.Geteuid()), Gid: uint32(os.Getegid()), Size: int64(len(content))}}
	pieces, err := f.pack.AddAll([]byte(content))
	if err != nil {
		f.t.Fatal(err)
	}
	if len(content) > 0 {
		e.Data = []vault.Extent{{Size: e.Size, Pieces: pieces}}
	}
	return e
}

// done completes the backup, and returns its path and id.
func (f *forger) done() (where, id string) {
	f.t.Helper()
	err := f.pack.Close()
	if err == nil {
		id, err = f.into.Commit(&f.m)
	}
	if err = errors.Join(err, f.into.Close()); err != nil {
		f.t.Fatal(err)
	}
	return f.into.Where(), id
}

// stage opens a backup and stages it, as restore does, with the state and site directories below
// dir.
func stage(t testing.TB, where, dir string) (*Restore, error) {
	v, _, err := vault.Open(where)
	if err != nil {
		return nil, err
	}
	t.Cleanup(func() { v.Close() })
	id, m, err := vault.Resolve(v, "")
	if err != nil {
		return nil, err
	}
	dirs := host.Dirs{State: filepath.Join(dir, "state"), Run: filepath.Join(dir, "run")}
	r := &Restore{
		Part: Part{Layout: Layout{Dirs: dirs, Key: m.Key, SiteDir: filepath.Join(dir, "site")}, ID: id, Manifest: m,
			Store: image.Open(dirs.State)},
		Contents: vault.NewPieces(v), Saw: func(int64) {},
	}
	if err := v.Verify(t.Context(), id, r.Saw); err != nil {
		return r, err
	}
	if err := (&SiteDir{v, m, r.SiteDir}).Check(t.Context()); err != nil {
		return r, err
	}
	if slices.ContainsFunc(m.Trees, func(t vault.Tree) bool { return t.Kind == vault.VolumeTree && t.Path != "" }) {
		return r, errAsks
	}
	if r.Sizes, err = sizes(t, r.Contents, m); err != nil {
		return r, err
	}
	return r, r.Stage(t.Context())
}

// sizes returns the sizes of the trees in a backup, as a sender would report them.
func sizes(t testing.TB, from Contents, m *vault.Manifest) (map[string]Size, error) {
	all := map[string]Size{}
	for i := range m.Trees {
		size, err := SizeOf(t.Context(), from, &m.Trees[i])
		if err != nil {
			return nil, err
		}
		all[m.Trees[i].Name] = size
	}
	return all, nil
}

// errAsks stands for a question to the user.
var errAsks = errors.New("volumes come to directories of the host")

// yard returns a directory for a restore, beside which there is a directory that the restore must
// not change. Intact checks that.
func yard(t testing.TB) (dir string, intact func()) {
	top := t.TempDir()
	if err := os.Chmod(top, 0o700); err != nil {
		t.Fatal(err)
	}
	dir, beside := filepath.Join(top, "restored"), filepath.Join(top, "beside")
	err := errors.Join(os.Mkdir(dir, 0o755), os.Mkdir(beside, 0o755),
		os.WriteFile(filepath.Join(beside, "mine"), []byte("of the host"), 0o600))
	if err != nil {
		t.Fatal(err)
	}
	return dir, func() {
		t.Helper()
		text, err := os.ReadFile(filepath.Join(beside, "mine"))
		names, _ := os.ReadDir(beside)
		all, _ := os.ReadDir(top)
		if err != nil || string(text) != "of the host" || len(names) != 1 || len(all) != 2 {
			t.Errorf("something beside was touched: %q, %v, %v, %v", text, err, names, all)
		}
	}
}

// TestNamesOfStrangers: no name in a manifest leads outside.
//
// Promise (Files of strangers): `backup ls`, `backup verify`, and `restore` until it brings the
// site up, write only in the site's own state and the directories that you agreed to. With
// backup.TestLinksInSnapshots, tree.TestBuildStaysInside, backup.FuzzManifest.
func TestNamesOfStrangers(t *testing.T) {
	up := "../../../../../beside"
	node := func(name string, id int) nodedir.Record {
		return nodedir.Record{Node: spec.Node{Name: name, ID: id, Base: "abc"}}
	}
	for name, change := range map[string]func(*forger){
		"site":    func(f *forger) { f.m.Site, f.m.Key = up, up },
		"no site": func(f *forger) { f.m.Site, f.m.Key = "", "" },
		"key":     func(f *forger) { f.m.Key = "t" },
		"twin":    func(f *forger) { f.m.Twin, f.m.Key = "../x", "s.../x" },
		"volume":  func(f *forger) { f.tree(vault.Tree{Name: "volume/" + up, Kind: vault.VolumeTree, Volume: up}) },
		"volume node": func(f *forger) {
			f.tree(vault.Tree{Name: "volume/v/" + up, Kind: vault.VolumeTree, Volume: "v", Node: up})
		},
		"volume path": func(f *forger) {
			f.tree(vault.Tree{Name: "volume/v", Kind: vault.VolumeTree, Volume: "v", Path: "../beside"})
		},
		"volume root": func(f *forger) {
			f.tree(vault.Tree{Name: "volume/v", Kind: vault.VolumeTree, Volume: "v", Path: "/"})
		},
		"tree": func(f *forger) {
			f.tree(vault.Tree{Name: up, Kind: vault.VolumeTree, Volume: "v"}, f.file("mine", "of a stranger"))
		},
		"release":   func(f *forger) { f.tree(vault.Tree{Name: up, Kind: vault.ReleaseTree, Number: 7}) },
		"number":    func(f *forger) { f.tree(vault.Tree{Name: "release/-1", Kind: vault.ReleaseTree, Number: -1}) },
		"snapshot":  func(f *forger) { f.tree(vault.Tree{Name: "snapshot/..", Kind: vault.SnapshotTree}) },
		"snapshots": func(f *forger) { f.tree(vault.Tree{Name: "snapshot/a/b", Kind: vault.SnapshotTree}) },
		"layer":     func(f *forger) { f.tree(vault.Tree{Name: "layer/" + up, Kind: vault.LayerTree, Layer: up}) },
		"private":   func(f *forger) { f.tree(vault.Tree{Name: up, Kind: vault.PrivateTree, ID: 1, Node: "n"}) },
		"no kind":   func(f *forger) { f.tree(vault.Tree{Name: "x", Kind: "x"}) },
		"twice": func(f *forger) {
			f.tree(vault.Tree{Name: "private/1", Kind: vault.PrivateTree, ID: 1, Node: "n"})
			f.tree(vault.Tree{Name: "private/1", Kind: vault.PrivateTree, ID: 1, Node: "n"})
		},
		"node":           func(f *forger) { f.m.Nodes = []nodedir.Record{node(up, 1)} },
		"node id":        func(f *forger) { f.m.Nodes = []nodedir.Record{node("n", -1)} },
		"recipe":         func(f *forger) { f.m.Layers = []image.Record{{Digest: up}} },
		"below":          func(f *forger) { f.m.Layers = []image.Record{{Digest: "abc", Below: []string{up}}} },
		"base":           func(f *forger) { f.m.Layers = []image.Record{{Digest: "abc", Base: up}} },
		"escape":         func(f *forger) { f.m.Who = "me\x1b[2J" },
		"live":           func(f *forger) { f.m.Releases = json.RawMessage(`{"active":{"../x":1}}`) },
		"live number":    func(f *forger) { f.m.Releases = json.RawMessage(`{"active":{"n":-1}}`) },
		"endless number": func(f *forger) { f.m.Releases = json.RawMessage(`{"confirmed":[99999999]}`) },
	} {
		f := forgeArchive(t)
		change(f)
		where, _ := f.done()
		dir, intact := yard(t)
		if _, err := stage(t, where, dir); err == nil {
			t.Errorf("%s: it was laid down", name)
		} else if p := (*problem.Problem)(nil); !errors.As(err, &p) || strings.Contains(err.Error(), "\x1b") {
			t.Errorf("%s: %q", name, err)
		}
		intact()
	}
}

// TestLayersOfStrangers: a layer in a backup is not stored under the digest of its recipe, where
// other sites would use it.
//
// Promise (Files of strangers): No backup puts a layer under the digest of a recipe without
// `--trust-layers`.
func TestLayersOfStrangers(t *testing.T) {
	f := forgeArchive(t)
	f.tree(vault.Tree{Name: "layer/abc", Kind: vault.LayerTree, Layer: "abc"}, f.file("evil", "evil"))
	f.m.Layers = []image.Record{{Digest: "abc", Title: "base image", Content: "never read"}}
	where, _ := f.done()
	dir, intact := yard(t)
	r, err := stage(t, where, dir)
	must(t, err)
	if layers, err := r.Store.Layers(); err != nil || len(layers) > 0 {
		t.Errorf("in the store are %v: %v", layers, err)
	}
	if got := r.LayersToRebuild(); !slices.Equal(got, []string{"base image"}) {
		t.Errorf("distrusted: %q", got)
	}
	intact()
}

// limited calls do, which must return an error within limits of memory and time.
func limited(t *testing.T, most uint64, do func() error) error {
	t.Helper()
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	begun := time.Now()
	err := do()
	runtime.ReadMemStats(&after)
	if took := time.Since(begun); took > 20*time.Second {
		t.Errorf("it took %s", took)
	}
	if all := after.TotalAlloc - before.TotalAlloc; all > most {
		t.Errorf("it took %d MiB of memory", all>>20)
	}
	if err == nil {
		t.Error("it was taken")
	}
	return err
}

// repeat returns n copies of a digest.
func repeat(d vault.Digest, n int) []vault.Digest {
	all := make([]vault.Digest, n)
	for i := range all {
		all[i] = d
	}
	return all
}

// TestBombs: a backup that would unpack to much more than its size ends with an error before that.
func TestBombs(t *testing.T) {
	private := vault.Tree{Name: "private/1", Kind: vault.PrivateTree, Node: "n", ID: 1}
	big := strings.Repeat("x", vault.PieceSize)
	reg := func(name string) vault.Entry {
		return vault.Entry{Entry: treesync.Entry{Name: treesync.Name(name), Mode: unix.S_IFREG | 0o600}}
	}
	for name, fill := range map[string]func(*testing.T, *forger){
		"a piece 200,000 times": func(t *testing.T, f *forger) {
			var st unix.Statfs_t
			must(t, unix.Statfs(t.TempDir(), &st))
			if int64(st.Bavail)*st.Bsize > 200_000*vault.PieceSize {
				t.Skip("there would be room for it")
			}
			e := f.file("file", big)
			e.Size = 200_000 * vault.PieceSize
			e.Data[0] = vault.Extent{Size: e.Size, Pieces: repeat(e.Data[0].Pieces[0], 200_000)}
			f.tree(private, e)
		},
		"more pieces than it says": func(_ *testing.T, f *forger) {
			e := f.file("file", big)
			e.Data[0].Pieces = repeat(e.Data[0].Pieces[0], 200_000)
			f.tree(private, e)
		},
		"larger pieces than it says": func(_ *testing.T, f *forger) {
			e := f.file("file", big)
			e.Size, e.Data[0].Size = 1, 1
			f.tree(private, e)
		},
		"parts over one another": func(_ *testing.T, f *forger) {
			e := f.file("file", big)
			e.Data = slices.Repeat(e.Data, 1000)
			f.tree(private, e)
		},
		"a list 200,000 times": func(t *testing.T, f *forger) {
			line, err := json.Marshal(reg("x" + strings.Repeat("y", 200)))
			must(t, err)
			d, err := f.pack.Add(bytes.Repeat(append(line, '\n'), vault.PieceSize/(len(line)+1)))
			must(t, err)
			private := private
			private.List = repeat(d, 200_000)
			f.m.Trees = append(f.m.Trees, private)
		},
		"a line that never ends": func(t *testing.T, f *forger) {
			d, err := f.pack.Add([]byte(`{"p":"` + strings.Repeat("x", vault.PieceSize-6)))
			must(t, err)
			private := private
			private.List = repeat(d, 200_000)
			f.m.Trees = append(f.m.Trees, private)
		},
		"a negative size": func(_ *testing.T, f *forger) {
			f.tree(private, vault.Entry{Entry: treesync.Entry{Name: "f", Mode: unix.S_IFREG | 0o600, Size: -1}})
		},
		"a size of 8 EiB": func(_ *testing.T, f *forger) {
			f.tree(private, vault.Entry{Entry: treesync.Entry{Name: "f", Mode: unix.S_IFREG | 0o600, Size: 1<<63 - 1}})
		},
		"a part of 8 EiB": func(_ *testing.T, f *forger) {
			f.tree(private, vault.Entry{Entry: treesync.Entry{Name: "f", Mode: unix.S_IFREG | 0o600, Size: 1<<63 - 1},
				Data: []vault.Extent{{At: 1<<63 - 2, Size: 3, Pieces: repeat(vault.Digest{}, 1)}}})
		},
		"a deep path": func(_ *testing.T, f *forger) { f.tree(private, reg(strings.Repeat("d/", 1<<20)+"x")) },
		"in no order": func(_ *testing.T, f *forger) { f.tree(private, reg("b"), reg("a")) },
		"twice":       func(_ *testing.T, f *forger) { f.tree(private, reg("a"), reg("a")) },
		"a link of 1 MiB": func(_ *testing.T, f *forger) {
			f.tree(private, vault.Entry{Entry: treesync.Entry{Name: "l", Mode: unix.S_IFLNK | 0o777, Link: treesync.Name(big)}})
		},
		"another of itself": func(_ *testing.T, f *forger) { e := reg("a"); e.Same = "a"; f.tree(private, e) },
		"a million of none": func(_ *testing.T, f *forger) { f.m.Left = slices.Repeat([]string{""}, 1_000_000) },
	} {
		t.Run(name, func(t *testing.T) {
			if name == "a size of 8 EiB" {
				t.Setenv("TMPDIR", "/var/tmp") // a tmpfs would have room for it
			}
			f := forgeArchive(t)
			fill(t, f)
			where, _ := f.done()
			dir, intact := yard(t)
			err := limited(t, 1<<30, func() error { _, err := stage(t, where, dir); return err })
			if p := (*problem.Problem)(nil); err != nil && (!errors.As(err, &p) || len(err.Error()) > 2000) {
				t.Errorf("%.3000q", err)
			}
			if _, err := os.Lstat(StagingDir(host.Dirs{State: filepath.Join(dir, "state")}, "s")); err == nil {
				t.Error("something of it is left")
			}
			intact()
		})
	}
}

// head returns the header of an archive's member, with any size.
func head(t testing.TB, name string, size int64) []byte {
	var b bytes.Buffer
	h := &tar.Header{Name: name, Size: size, Mode: 0o600, Typeflag: tar.TypeReg, ModTime: time.Unix(0, 0),
		Format: tar.FormatGNU}
	if size < 1<<33 {
		h.Format = tar.FormatUSTAR
	}
	if err := tar.NewWriter(&b).WriteHeader(h); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// The start of a repository and of an archive.
const marked, mark1 = "orrery-backup", "orrery backup 1\n"

// TestHeadsOfStrangers: an archive whose headers contain sizes beyond those of any machine is
// refused without a panic.
//
// Promise (Files of strangers): No crafted archive, index or directory of backups causes a panic, a
// hang, or memory use out of proportion. With backup.TestBombs, backup.TestManifestBombs,
// backup.TestDirectoryOfStrangers, backup.FuzzArchive, backup/vault.FuzzIndex.
func TestHeadsOfStrangers(t *testing.T) {
	block := blockPath(vault.Digest{1})
	begin := slices.Concat(head(t, marked, int64(len(mark1))), []byte(mark1), make([]byte, 512-len(mark1)))
	sparse := func(size int64) func(*os.File) error { return func(f *os.File) error { return f.Truncate(size) } }
	const skippable, pieceLine = 0x184D2A5E, 36
	listed := binary.LittleEndian.AppendUint32(binary.LittleEndian.AppendUint32(nil, skippable),
		uint32(64<<20/pieceLine*pieceLine))
	for name, c := range map[string]struct {
		text []byte
		more func(*os.File) error
	}{
		"8 EiB": {slices.Concat(begin, head(t, block, 1<<63-1)), sparse(1 << 20)},
		"a manifest of 8 EiB": {slices.Concat(begin,
			head(t, "backups/19700101-000001-0123456789abcdef.json", 1<<63-1024)), sparse(1 << 20)},
		"almost":          {slices.Concat(begin, head(t, block, 1<<63-1024)), sparse(1 << 20)},
		"1 TiB, sparse":   {slices.Concat(begin, head(t, block, 1<<40)), sparse(1 << 41)},
		"a mark of 1 GiB": {head(t, marked, 1<<30), sparse(1 << 31)},
		"a manifest": {slices.Concat(begin,
			head(t, "backups/19700101-000001-0123456789abcdef.json", 1<<30)), sparse(1 << 31)},
		"a block of no pieces but zero": {slices.Concat(begin, head(t, block, 65<<20), listed), sparse(1 << 30)},
		"no name":                       {slices.Concat(begin, head(t, "backups/../../x.json", 5)), sparse(1 << 20)},
	} {
		path := filepath.Join(t.TempDir(), "file")
		must(t, os.WriteFile(path, c.text, 0o600))
		f, err := os.OpenFile(path, os.O_RDWR, 0)
		must(t, err)
		must(t, errors.Join(c.more(f), f.Close()))
		err = limited(t, 300<<20, func() error {
			a, err := vault.OpenArchive(path)
			if err == nil {
				a.Close()
			}
			return err
		})
		if err != nil && problem.ExitCode(err) != int(problem.Failed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestManifestBombs: the JSON of a manifest does not take a hundred times its size in memory.
func TestManifestBombs(t *testing.T) {
	for name, text := range map[string]string{
		"nodes":   `{"format":1,"nodes":[` + strings.Repeat("1,", 8<<20) + `1]}`,
		"objects": `{"format":1,"nodes":[` + strings.Repeat("{},", 8<<20) + `{}]}`,
		"trees":   `{"format":1,"trees":[` + strings.Repeat("{},", 8<<20) + `{}]}`,
		"pieces":  `{"format":1,"secrets":{"pieces":[` + strings.Repeat("1,", 8<<20) + `1]}}`,
		"deep":    `{"format":1,"nodes":` + strings.Repeat("[", 8<<20),
	} {
		t.Run(name, func(t *testing.T) {
			_ = limited(t, 1<<30, func() error { return json.Unmarshal([]byte(text), &vault.Manifest{}) })
		})
	}
}

// TestWhatIsLaidDown: what could be of use to users of the host, or to overlayfs, is left out and
// reported.
//
// Promise (Files of strangers): A restored tree has no devices, and no set-user-ID program that
// users of the host can reach.
func TestWhatIsLaidDown(t *testing.T) {
	f := forgeArchive(t)
	shell := f.file("shell", "#!")
	shell.Mode |= 0o6000
	shell.Attrs = treesync.Attrs{"trusted.overlay.redirect": []byte("/etc"), "user.overlay.redirect": []byte("/etc")}
	for _, tree := range []vault.Tree{{Name: "site", Kind: vault.SiteTree},
		{Name: "volume/v", Kind: vault.VolumeTree, Volume: "v"}} {
		f.tree(tree, vault.Entry{Entry: treesync.Entry{Name: "disk", Mode: unix.S_IFBLK | 0o666, Major: 8}},
			vault.Entry{Entry: treesync.Entry{Name: "pipe", Mode: unix.S_IFIFO | 0o600, Uid: shell.Uid, Gid: shell.Gid}},
			shell, vault.Entry{Entry: treesync.Entry{Name: "zero", Mode: unix.S_IFCHR | 0o666, Major: 1, Minor: 5}})
	}
	where, _ := f.done()
	dir, intact := yard(t)
	// users of the host can reach it
	must(t, errors.Join(os.Chmod(filepath.Dir(dir), 0o755), os.Chmod(filepath.Dir(filepath.Dir(dir)), 0o755)))
	r, err := stage(t, where, dir)
	must(t, err)
	intact()
	for _, at := range []string{stagingPath(r.SiteDir), r.staged("trees/volume/v")} {
		site := at == stagingPath(r.SiteDir)
		info, err := os.Lstat(filepath.Join(at, "shell"))
		must(t, err)
		if setID := info.Mode()&(fs.ModeSetuid|fs.ModeSetgid) != 0; setID == site {
			t.Errorf("%s: the mode is %s", at, info.Mode())
		}
		for _, name := range []string{"disk", "zero"} {
			if _, err := os.Lstat(filepath.Join(at, name)); err == nil {
				t.Errorf("%s: %s is there", at, name)
			}
		}
		if _, err := os.Lstat(filepath.Join(at, "pipe")); (err == nil) == site {
			t.Errorf("%s: the pipe: %v", at, err)
		}
		for _, attr := range []string{"trusted.overlay.redirect", "user.overlay.redirect"} {
			if _, err := unix.Lgetxattr(filepath.Join(at, "shell"), attr, nil); err == nil {
				t.Errorf("%s: it has %s", at, attr)
			}
		}
	}
	if r.Lacked["devices"] != 4 || r.Lacked["set-user-ID or set-group-ID"] != 1 || r.Lacked["named pipes"] != 1 ||
		r.Lacked["trusted.overlay.redirect"] != 2 {
		t.Errorf("it lacks %v", r.Lacked)
	}
}

// TestDirectoryOfStrangers: links and named pipes in a directory of backups are damage. Nothing
// blocks, and nothing outside is read or written.
func TestDirectoryOfStrangers(t *testing.T) {
	outside := t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("of the host"), 0o600))
	for name, spoil := range map[string]func(at, id, block string){
		"a block is a pipe": func(_, _, block string) { must(t, errors.Join(os.Remove(block), unix.Mkfifo(block, 0o600))) },
		"a block is endless": func(_, _, block string) {
			must(t, errors.Join(os.Remove(block), os.Symlink("/dev/zero", block)))
		},
		"the manifest is endless": func(at, id, _ string) {
			file := filepath.Join(at, "backups", id+".json")
			must(t, errors.Join(os.Remove(file), os.Symlink("/dev/zero", file)))
		},
		"the mark is a pipe": func(at, _, _ string) {
			must(t, errors.Join(os.Remove(filepath.Join(at, marked)), unix.Mkfifo(filepath.Join(at, marked), 0o600)))
		},
		"all are elsewhere": func(at, _, _ string) {
			must(t, errors.Join(os.RemoveAll(filepath.Join(at, "blocks")), os.Symlink(outside, filepath.Join(at, "blocks"))))
		},
	} {
		t.Run(name, func(t *testing.T) {
			at := filepath.Join(t.TempDir(), "backups")
			v, err := vault.WriteRepository(at)
			must(t, err)
			f := forge(t, v)
			f.tree(vault.Tree{Name: "site", Kind: vault.SiteTree}, f.file("text", "text"))
			_, id := f.done()
			blocks, err := filepath.Glob(filepath.Join(at, "blocks/*/*.zst"))
			must(t, err)
			spoil(at, id, blocks[0])
			dir, intact := yard(t)
			_ = limited(t, 300<<20, func() error { _, err := stage(t, at, dir); return err })
			intact()
			if w, err := vault.WriteRepository(at); err == nil {
				f := forge(t, w)
				f.tree(vault.Tree{Name: "site", Kind: vault.SiteTree}, f.file("text", "another text"))
				_ = f.pack.Close()
				_, _ = w.Commit(&f.m)
				must(t, w.Close())
			}
			if names, _ := os.ReadDir(outside); len(names) != 1 {
				t.Errorf("outside there are %v", names)
			}
		})
	}
}

// TestSnapshotOfStrangers: a restored snapshot describes the nodes on this host, and not what its
// author wrote.
//
// Promise (Files of strangers): A snapshot in a backup decides neither directories of the host nor
// rights of a node.
func TestSnapshotOfStrangers(t *testing.T) {
	snapshots := func(text string) (*Restore, error) {
		f := forgeArchive(t)
		f.tree(vault.Tree{Name: "snapshot/one", Kind: vault.SnapshotTree},
			vault.Entry{Entry: treesync.Entry{Name: "nodes", Mode: unix.S_IFDIR | 0o700, Uid: uint32(os.Geteuid()),
				Gid: uint32(os.Getegid())}},
			f.file("snapshot.json", text))
		where, _ := f.done()
		dir, intact := yard(t)
		r, err := stage(t, where, dir)
		intact()
		return r, err
	}
	for name, text := range map[string]string{
		"another name": `{"id":"two","site":"s"}`, "another site": `{"id":"one","site":"../s"}`,
		"no record": `{"id":"one","site":"s","nodes":[{}]}`,
		"volume":    `{"id":"one","site":"s","volumes":[{"name":"../x","node":"n"}]}`,
		"node":      `{"id":"one","site":"s","nodes":[{"record":{"name":"../x","id":1}}]}`,
	} {
		if _, err := snapshots(text); err == nil {
			t.Errorf("%s: it was laid down", name)
		}
	}
	r, err := snapshots(`{"id":"one","site":"s","nodes":[{"record":{"name":"n","id":1,"privileged":true,"base":"abc","mounts":[{"volume":"v","source":"/etc"}]}},` +
		`{"record":{"name":"gone","id":2,"privileged":true}}],"volumes":[{"name":"v","node":"n","path":"/etc"},{"name":"w","node":"n","path":"/root"}]}`)
	must(t, err)
	if tree.Exists(filepath.Join(r.Dirs.Snapshots("s"), "one")) {
		t.Error("it is in its place before the nodes are there")
	}
	must(t, os.MkdirAll(nodedir.Of(r.Dirs, "s", 1).Path(), 0o700))
	must(t, nodedir.Of(r.Dirs, "s",
		1).Write(&nodedir.Record{Node: spec.Node{Site: "s", Name: "n", ID: 1, Base: "def",
		Mounts: []spec.Mount{{Volume: "v", Path: "/v"}}}}))
	must(t, r.PlaceSnapshots(nil))
	s, err := readSnapshot(filepath.Join(r.Dirs.Snapshots("s"), "one"))
	must(t, err)
	if len(s.Nodes) != 1 || s.Nodes[0].Record.Privileged || s.Nodes[0].Record.Mounts[0].Source != "" ||
		s.Nodes[0].Record.Base != "abc" {
		t.Errorf("its nodes are %+v", s.Nodes)
	}
	if len(s.Volumes) != 1 || s.Volumes[0].Path != filepath.Join(r.Dirs.Volumes("s"), "v/n") {
		t.Errorf("its volumes are %+v", s.Volumes)
	}
}

// TestLinksInSnapshots: the directories of a snapshot are accessed by path, so none of them may be
// a link.
func TestLinksInSnapshots(t *testing.T) {
	for _, name := range []string{"nodes", "volumes", "nodes/1", "nodes/1/upper", "volumes/v", "volumes/v/n"} {
		f := forgeArchive(t)
		var above []vault.Entry
		for i, c := range name {
			if c == '/' {
				above = append(above, vault.Entry{Entry: treesync.Entry{Name: treesync.Name(name[:i]), Mode: unix.S_IFDIR | 0o700,
					Uid: uint32(os.Geteuid()), Gid: uint32(os.Getegid())}})
			}
		}
		f.tree(vault.Tree{Name: "snapshot/one", Kind: vault.SnapshotTree},
			append(above, vault.Entry{Entry: treesync.Entry{Name: treesync.Name(name), Mode: unix.S_IFLNK | 0o777,
				Link: "/etc"}})...)
		where, _ := f.done()
		dir, intact := yard(t)
		if _, err := stage(t, where, dir); err == nil {
			t.Errorf("%s is a link", name)
		}
		intact()
	}
}

// TestCarryStaysInside: writing to a restored private layer does not follow its links, and blocks
// on nothing.
func TestCarryStaysInside(t *testing.T) {
	made, staged, outside := t.TempDir(), t.TempDir(), t.TempDir()
	must(t, os.MkdirAll(filepath.Join(made, "etc/ssh"), 0o755))
	must(t, os.WriteFile(filepath.Join(made, "etc/ssh/ssh_host_ed25519_key"), []byte("key"), 0o600))
	must(t, unix.Mkfifo(filepath.Join(made, "etc/ssh/ssh_host_rsa_key"), 0o600))
	must(t, os.Symlink("/dev/zero", filepath.Join(made, "etc/resolv.conf")))
	must(t, os.Mkdir(filepath.Join(staged, "etc"), 0o755))
	must(t, os.Symlink(outside, filepath.Join(staged, "etc/ssh")))
	done := make(chan error, 1)
	go func() { done <- copyHostFiles(made, staged) }()
	select {
	case <-done:
	case <-time.After(10 * time.Second):
		t.Fatal("it waits")
	}
	if names, _ := os.ReadDir(outside); len(names) > 0 {
		t.Errorf("outside there are %v", names)
	}
	must(t, os.Remove(filepath.Join(staged, "etc/ssh")))
	must(t, copyHostFiles(made, staged))
	if text, err := os.ReadFile(filepath.Join(staged, "etc/ssh/ssh_host_ed25519_key")); string(text) != "key" {
		t.Errorf("the key is %q: %v", text, err)
	}
}

func TestPartIsNoLink(t *testing.T) {
	path, mine := filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "mine")
	must(t, os.WriteFile(mine, []byte("of the host"), 0o600))
	must(t, os.Symlink(mine, path+".part"))
	if _, err := vault.WriteArchive(path); problem.ExitCode(err) != int(problem.Usage) {
		t.Errorf("written: %v", err)
	}
	if text, _ := os.ReadFile(mine); string(text) != "of the host" {
		t.Errorf("it holds %q", text)
	}
}
