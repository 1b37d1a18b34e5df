package backup

import (
	"crypto/rand"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/backup/vault"
	test "orrery/test/need"
)

// rot lists what may happen to the file of a block.
var rot = map[string]func(t *testing.T, path string){
	"a flipped byte": func(t *testing.T, path string) {
		text, err := os.ReadFile(path)
		must(t, err)
		text[len(text)-1] ^= 1
		must(t, os.WriteFile(path, text, 0o600))
	},
	"a flipped byte in its head": func(t *testing.T, path string) {
		text, err := os.ReadFile(path)
		must(t, err)
		text[9] ^= 1
		must(t, os.WriteFile(path, text, 0o600))
	},
	"cut off": func(t *testing.T, path string) { must(t, os.Truncate(path, 100)) },
	"emptied": func(t *testing.T, path string) { must(t, os.Truncate(path, 0)) },
	"missing": func(t *testing.T, path string) { must(t, os.Remove(path)) },
	"a link": func(t *testing.T, path string) {
		must(t, os.Rename(path, path+".x"))
		must(t, os.Symlink(filepath.Base(path)+".x", path))
	},
	"a pipe": func(t *testing.T, path string) { must(t, os.Remove(path)); must(t, unix.Mkfifo(path, 0o600)) },
	"a socket": func(t *testing.T, path string) {
		must(t, os.Remove(path))
		must(t, unix.Mknod(path, unix.S_IFSOCK|0o600, 0))
	},
	"a directory": func(t *testing.T, path string) {
		must(t, os.Remove(path))
		must(t, os.MkdirAll(filepath.Join(path, "in/it"), 0o700))
	},
	"its directory a file": func(t *testing.T, path string) {
		must(t, os.RemoveAll(filepath.Dir(path)))
		must(t, os.WriteFile(filepath.Dir(path), []byte("x"), 0o600))
	},
	"its directory a link": func(t *testing.T, path string) {
		to := filepath.Dir(path) + filepath.Base(path)
		must(t, os.Rename(filepath.Dir(path), to))
		must(t, os.Symlink(filepath.Base(to), filepath.Dir(path)))
	},
}

// noise fills a file with data that cannot be compressed.
func noise(t *testing.T, path string, size int) {
	t.Helper()
	text := make([]byte, size)
	_, err := rand.Read(text)
	must(t, errors.Join(err, os.WriteFile(path, text, 0o600)))
}

// keepTwice returns a tree that was backed up twice, so that blocks are reused that were not just
// written.
func keepTwice(t *testing.T) (dir, at string) {
	var last *Report
	dir, at = t.TempDir(), filepath.Join(t.TempDir(), "backups")
	writeTree(t, dir)
	noise(t, filepath.Join(dir, "noise"), 2*vault.PieceSize)
	time.Sleep(2 * minAge)
	for range 2 {
		last = keepAgain(t, at, dir)
	}
	if last.Read != 0 || last.Wrote != 0 || len(last.Checked.Corrupt) > 0 {
		t.Fatalf("unchanged: %+v", last)
	}
	return dir, at
}

var keptAt = time.Date(2026, 7, 30, 12, 0, 0, 0, time.UTC)

func keepAgain(t *testing.T, at, dir string) *Report {
	t.Helper()
	w, err := vault.WriteRepository(at)
	must(t, err)
	defer w.Close()
	keptAt = keptAt.Add(time.Hour)
	r, err := kept(t, w, dir, keptAt)
	must(t, err)
	return r
}

// wantWhole wants that all backups are whole, and that the last one has what is in the directory.
func wantWhole(t *testing.T, at, dir string) {
	t.Helper()
	last := wantVerified(t, at)
	v, err := vault.OpenRepository(at)
	must(t, err)
	defer v.Close()
	wantSame(t, dir, back(t, v, last))
}

// wantVerified wants that all backups are whole, and returns the last.
func wantVerified(t *testing.T, at string) string {
	t.Helper()
	v, err := vault.OpenRepository(at)
	must(t, err)
	defer v.Close()
	ids, err := v.Backups()
	must(t, err)
	for _, id := range ids {
		if err := v.Verify(t.Context(), id, func(int64) {}); err != nil {
			t.Error(err)
		}
	}
	return ids[len(ids)-1]
}

// TestRot: whatever has happened to a block, the next backup notices it and writes what it needs of
// it again. The backup after that has nothing more to do.
func TestRot(t *testing.T) {
	for name, spoil := range rot {
		t.Run(name, func(t *testing.T) {
			dir, at := keepTwice(t)
			for _, block := range blocksOfRepository(t, at)[:test.Times(1, 2)] { // in any order
				path := filepath.Join(at, blockPath(block))
				spoil(t, path)
				r := keepAgain(t, at, dir)
				if name != "missing" && !strings.HasPrefix(name, "its directory") &&
					(len(r.Checked.Corrupt) != 1 || r.Checked.Corrupt[0].Block != block || r.Checked.Corrupt[0].Why == nil) {
					t.Errorf("it found %v", r.Checked.Corrupt)
				}
				if r.Wrote == 0 {
					t.Error("nothing was written over rot")
				}
				wantWhole(t, at, dir)
				if r := keepAgain(t, at, dir); r.Wrote != 0 || r.Read != 0 || len(r.Checked.Corrupt) > 0 {
					t.Errorf("then again: %d read, %d written, %v", r.Read, r.Wrote, r.Checked.Corrupt)
				}
			}
		})
	}
}

// forget damages a block as a failing disk does: the times of the file do not change.
func forget(t *testing.T, at string, block vault.Digest) {
	t.Helper()
	flip := rot["a flipped byte"]
	flip(t, filepath.Join(at, blockPath(block)))
	changeNotes(t, at, func(other vault.Digest, n *note) {
		if other == block {
			var st unix.Stat_t
			must(t, unix.Stat(filepath.Join(at, blockPath(block)), &st))
			n.Size, n.Inode, n.Changed = uint64(st.Size), st.Ino, uint64(st.Ctim.Nano())
		}
	})
}

// TestSilentRot: damage without a changed time is found by the sample, which over time includes
// every block. In the list of a tree, it is found at once.
func TestSilentRot(t *testing.T) {
	dir, at := keepTwice(t)
	for _, block := range blocksOfRepository(t, at) {
		forget(t, at, block)
		if r := keepAgain(t, at, dir); len(r.Checked.Corrupt) != 1 || r.Wrote == 0 {
			t.Errorf("%v, %d written", r.Checked.Corrupt, r.Wrote)
		}
		wantWhole(t, at, dir)
	}
}

// TestSampleComesRound: the size of the sample is limited, and the blocks that were read longest
// ago come first.
func TestSampleComesRound(t *testing.T) {
	const leastRead, maxBlockBytes = 4 << 20, 6 << 20
	dir, at := t.TempDir(), filepath.Join(t.TempDir(), "backups")
	noise(t, filepath.Join(dir, "noise"), 5*leastRead)
	time.Sleep(2 * minAge)
	keepAgain(t, at, dir)
	seen := map[vault.Digest]bool{}
	blocks := blocksOfRepository(t, at)
	for range 6 {
		changeNotes(t, at, func(_ vault.Digest, n *note) { n.Read -= 3600 }) // as if it was long ago
		r := keepAgain(t, at, dir)
		if c := r.Checked; c.Blocks != len(blocks) || c.Reread < leastRead || c.Reread > leastRead+maxBlockBytes ||
			c.Read >= c.Blocks {
			t.Errorf("%+v of %d", c, len(blocks))
		}
		now := uint64(time.Now().Unix())
		changeNotes(t, at, func(block vault.Digest, n *note) { seen[block] = seen[block] || n.Read > now-1800 })
	}
	for _, block := range blocks {
		if !seen[block] {
			t.Errorf("%s was never read", block)
		}
	}
}

// TestCopiedRepository: a copy, whose files have other inodes and times, is read completely once,
// and then no more than any other.
func TestCopiedRepository(t *testing.T) {
	dir, at := keepTwice(t)
	other := filepath.Join(t.TempDir(), "other")
	must(t, os.CopyFS(other, os.DirFS(at)))
	if r := keepAgain(t, other, dir); r.Checked.Read != r.Checked.Blocks || r.Wrote != 0 || len(r.Checked.Corrupt) > 0 {
		t.Errorf("%+v", r.Checked)
	}
	known := map[vault.Digest]bool{}
	changeNotes(t, other, func(block vault.Digest, n *note) { known[block] = n.Read > 0 })
	for _, block := range blocksOfRepository(t, other) {
		if !known[block] {
			t.Errorf("%s is not known to be whole", block)
		}
	}
}

// TestRottenNotes: damaged notes about blocks are ignored.
func TestRottenNotes(t *testing.T) {
	dir, at := keepTwice(t)
	for name, spoil := range rot {
		if strings.HasPrefix(name, "its directory") {
			continue
		}
		for _, note := range append(below(at+"/index"), "index/read") {
			spoil(t, filepath.Join(at, note))
			r := keepAgain(t, at, dir)
			if r.Read != 0 || len(r.Checked.Corrupt) > 0 {
				t.Errorf("%s, %s: %+v", name, note, r)
			}
			wantWhole(t, at, dir)
		}
	}
}

// repair repairs a repository, from a directory that is a node's private layer and from other
// vaults.
func repair(t *testing.T, at, dir string, from ...vault.Vault) *Repaired {
	t.Helper()
	w, err := vault.WriteRepository(at)
	must(t, err)
	defer w.Close()
	p := &Repair{Into: w, From: from, Saw: func(int64) {}}
	if dir != "" {
		p.seekIn = func(tk *Backup) error {
			tk.Selection = &Selection{Site: aSite}
			return tk.searchSources(t.Context(),
				[]Source{{Tree: vault.Tree{Name: "private/1", Kind: vault.PrivateTree, Node: "n", ID: 1}, Dir: dir}})
		}
	}
	done, err := p.Run(t.Context())
	must(t, err)
	return done
}

// TestRepair: whatever has happened to blocks, their content is read from the source again, and
// nothing else is written.
func TestRepair(t *testing.T) {
	for name, spoil := range rot {
		t.Run(name, func(t *testing.T) {
			dir, at := keepTwice(t)
			if done := repair(t, at, dir); done.BytesWritten != 0 || len(done.Corrupt) > 0 || len(done.Backups) != 2 {
				t.Errorf("nothing was damaged: %+v", done)
			}
			for _, block := range blocksOfRepository(t, at)[:test.Times(1, 2)] { // in any order
				spoil(t, filepath.Join(at, blockPath(block)))
				done := repair(t, at, dir)
				for _, b := range done.Backups {
					if b.Before.IsEmpty() || !b.After.IsEmpty() || b.Site != "s" {
						t.Errorf("backup %s lacked %v, and lacks %v", b.ID, b.Before.String(), b.After.String())
					}
				}
			}
			wantWhole(t, at, dir)
		})
	}
}

// TestRepairWritesWhatIsLacking: if a site has changed since the backup, its new data is not
// stored.
func TestRepairWritesWhatIsLacking(t *testing.T) {
	dir, at := keepTwice(t)
	noise(t, filepath.Join(dir, "later"), 3*vault.PieceSize)
	must(t, os.Rename(filepath.Join(dir, "noise"), filepath.Join(dir, "elsewhere"))) // content is found wherever it is
	v, err := vault.OpenRepository(at)
	must(t, err)
	block := blockWith(t, v, []byte("some text\n"))
	must(t, v.Close())
	rot["emptied"](t, filepath.Join(at, blockPath(block)))
	before := len(blocksOfRepository(t, at))
	done := repair(t, at, dir)
	if len(done.Corrupt) != 1 || !done.Backups[0].After.IsEmpty() || !done.Backups[1].After.IsEmpty() ||
		len(blocksOfRepository(t, at)) != before {
		t.Errorf("%+v; %d blocks, then %d", done, before, len(blocksOfRepository(t, at)))
	}
}

// TestRepairTellsWhatIsLost: data that exists nowhere any more is named, for each backup that lacks
// it. Everything else is restored, even from the damaged block, and another copy provides the rest.
func TestRepairTellsWhatIsLost(t *testing.T) {
	dir, at := t.TempDir(), filepath.Join(t.TempDir(), "backups")
	for _, name := range []string{"a", "b", "c"} {
		noise(t, filepath.Join(dir, name), vault.PieceSize)
	}
	time.Sleep(2 * minAge)
	first := keepAgain(t, at, dir)
	content, err := os.ReadFile(filepath.Join(dir, "c"))
	must(t, err)
	whole := filepath.Join(t.TempDir(), "copy")
	must(t, os.CopyFS(whole, os.DirFS(at)))
	must(t, os.Remove(filepath.Join(dir, "c")))
	second := keepAgain(t, at, dir)

	w, err := vault.OpenRepository(at)
	must(t, err)
	block := blockWith(t, w, content)
	must(t, w.Close())
	// the file is noise, so the last byte of the block is in its last piece
	rot["a flipped byte"](t, filepath.Join(at, blockPath(block)))
	done := repair(t, at, "")
	if done.Backups[0].ID != first.ID || done.Backups[0].After.String() != "node n: c" ||
		!done.Backups[1].After.IsEmpty() ||
		done.Backups[1].ID != second.ID {
		t.Errorf("%+v", done.Backups)
	}
	if _, err := os.Lstat(filepath.Join(at, "rotten", block.String()+".zst")); err != nil {
		t.Error("the damaged block was not kept: ", err)
	}
	other, err := vault.OpenRepository(whole)
	must(t, err)
	defer other.Close()
	if done := repair(t, at, "", other); done.BytesWritten == 0 || !done.Backups[0].After.IsEmpty() {
		t.Errorf("with a copy: %+v", done.Backups)
	}
	wantVerified(t, at)
}
