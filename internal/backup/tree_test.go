package backup

import (
	"archive/tar"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/backup/vault"
	"orrery/internal/problem"
	"orrery/internal/treesync"
)

// writeTree creates a tree with one entry of each kind that the user of the test may create.
func writeTree(t *testing.T, dir string) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Join(dir, "a/b"), 0o755))
	must(t, os.WriteFile(filepath.Join(dir, "a/text"), []byte("some text\n"), 0o640))
	must(t, os.Link(filepath.Join(dir, "a/text"), filepath.Join(dir, "a/b/same")))
	must(t, os.Symlink("../nowhere", filepath.Join(dir, "a/link")))
	must(t, os.WriteFile(filepath.Join(dir, "empty"), nil, 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "odd \xff\n\"name"), []byte("odd"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, "base64:x"), []byte("base64"), 0o600))
	must(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o622))
	must(t, os.Chmod(filepath.Join(dir, "fifo"), 0o622))
	must(t, os.Chmod(filepath.Join(dir, "a/b"), 0o711|fs.ModeSticky))
	must(t, os.WriteFile(filepath.Join(dir, "setuid"), []byte("#!/bin/sh\n"), 0o755))
	must(t, os.Chmod(filepath.Join(dir, "setuid"), 0o755|fs.ModeSetuid))
	if err := unix.Setxattr(filepath.Join(dir, "a/text"), "user.note", []byte("n\x00te"), 0); err != nil &&
		!errors.Is(err, unix.ENOTSUP) {
		t.Fatal(err)
	}
	big := make([]byte, 3*vault.PieceSize+17)
	for i := range big {
		big[i] = byte(i * i >> 7)
	}
	must(t, os.WriteFile(filepath.Join(dir, "big"), big, 0o644))
	sparse, err := os.Create(filepath.Join(dir, "sparse"))
	must(t, err)
	must(t, sparse.Truncate(1<<30))
	_, err = sparse.WriteAt([]byte("in the middle"), 1<<29+4096)
	must(t, errors.Join(err, sparse.Close()))
	when := time.Unix(1_000_000_000, 123_456_789)
	must(t, os.Chtimes(filepath.Join(dir, "big"), when, when))
	must(t, os.Chtimes(filepath.Join(dir, "a"), when, when))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// kept backs up one directory.
func kept(t *testing.T, into vault.Vault, dir string, at time.Time) (*Report, error) {
	t.Helper()
	backup := &Backup{Into: into, Saw: func(int64) {}, Selection: &Selection{}}
	backup.Selection.Site = aSite
	m := &vault.Manifest{Format: vault.Format, Site: "s", Key: "s", Time: at}
	var read atomic.Int64
	err := backup.loadFormer(t.Context())
	if err == nil {
		from := []Source{{Tree: vault.Tree{Name: "private/1", Kind: vault.PrivateTree, Node: "n", ID: 1}, Dir: dir}}
		err = backup.trees.pass(t.Context(), from, backup.pack, backup.Saw, &read)
	}
	if err == nil {
		err = backup.lists(m)
	}
	if err == nil {
		err = backup.recoverPieces()
	}
	if err = errors.Join(err, backup.pack.Close()); err != nil {
		return nil, err
	}
	id, err := into.Commit(m)
	report := &Report{ID: id, Manifest: m, Read: read.Load(), Wrote: backup.pack.Written()}
	if r, ok := into.(*vault.Repository); ok {
		report.Checked = r.Checked()
	}
	return report, err
}

// back extracts the tree of a backup.
func back(t *testing.T, v vault.Vault, id string) string {
	t.Helper()
	m, err := v.Manifest(id)
	must(t, err)
	dir := filepath.Join(t.TempDir(), "back") // closed to other users, so that it may contain set-user-ID programs
	must(t, stageTree(t.Context(), vault.NewPieces(v), &m.Trees[0], dir, func(int64) {}, func(string) {}))
	return dir
}

// listOf returns a tree's entries without what is specific to this disk.
func listOf(t *testing.T, dir string) []string {
	t.Helper()
	into, err := vault.WriteRepository(filepath.Join(t.TempDir(), "r"))
	must(t, err)
	defer into.Close()
	pack := vault.NewPacker(into)
	w := &walk{ctx: t.Context(), source: &Source{Dir: dir}, pack: pack, buffer: make([]byte, vault.PieceSize),
		saw: func(int64) {}}
	entries, err := w.run()
	must(t, errors.Join(err, pack.Close()))
	var lines []string
	for _, e := range entries {
		e.Ino, e.Changed = 0, 0
		text, err := vault.WriteList([]vault.Entry{e})
		must(t, err)
		lines = append(lines, string(text))
	}
	return lines
}

func wantSame(t *testing.T, dir, again string) {
	t.Helper()
	want, got := listOf(t, dir), listOf(t, again)
	if len(want) != len(got) {
		t.Fatalf("%d paths, then %d", len(want), len(got))
	}
	for i := range want {
		if want[i] != got[i] {
			t.Errorf("was %sis  %s", want[i], got[i])
		}
	}
	var before, after unix.Stat_t
	must(t, errors.Join(unix.Stat(filepath.Join(dir, "sparse"), &before),
		unix.Stat(filepath.Join(again, "sparse"), &after)))
	if after.Blocks > before.Blocks {
		t.Errorf("the sparse file has %d blocks, %d before", after.Blocks, before.Blocks)
	}
}

func TestRepository(t *testing.T) {
	dir, at := t.TempDir(), filepath.Join(t.TempDir(), "backups")
	writeTree(t, dir)
	time.Sleep(2 * minAge)
	now := time.Date(2026, 7, 30, 12, 0, 0, 0, time.UTC)
	write := func(n int) *Report {
		v, err := vault.WriteRepository(at)
		must(t, err)
		defer v.Close()
		r, err := kept(t, v, dir, now.Add(time.Duration(n)*time.Hour))
		must(t, err)
		return r
	}
	first := write(0)
	if second := write(1); second.Read != 0 || second.Wrote != 0 {
		t.Errorf("unchanged: %d bytes read, %d written", second.Read, second.Wrote)
	}
	// A change that only the change time shows.
	info, err := os.Stat(filepath.Join(dir, "a/text"))
	must(t, err)
	must(t, os.WriteFile(filepath.Join(dir, "a/text"), []byte("same long\n"), 0))
	must(t, os.Chtimes(filepath.Join(dir, "a/text"), info.ModTime(), info.ModTime()))
	third := write(2)
	if third.Read == 0 || third.Read > 100 {
		t.Errorf("%d bytes read", third.Read)
	}
	v, err := vault.OpenRepository(at)
	must(t, err)
	for _, id := range []string{first.ID, third.ID} {
		must(t, v.Verify(t.Context(), id, func(int64) {}))
	}
	wantSame(t, dir, back(t, v, third.ID))
	if text, _ := os.ReadFile(filepath.Join(back(t, v, first.ID), "a/b/same")); string(text) != "some text\n" {
		t.Errorf("the first backup has %q", text)
	}
	must(t, v.Close())
	w, err := vault.WriteRepository(at)
	must(t, err)
	gone, _, err := w.Prune(1)
	must(t, err)
	if len(gone) != 2 {
		t.Errorf("pruned %v", gone)
	}
	must(t, w.Verify(t.Context(), third.ID, func(int64) {}))
	wantSame(t, dir, back(t, w, third.ID))
	must(t, w.Close())
}

// TestArchiveDamage: an archive in which any byte differs is refused.
func TestArchiveDamage(t *testing.T) {
	dir, path := t.TempDir(), filepath.Join(t.TempDir(), "file")
	must(t, os.WriteFile(filepath.Join(dir, "text"), []byte("some text"), 0o644))
	v, err := vault.WriteArchive(path)
	must(t, err)
	_, err = kept(t, v, dir, time.Unix(1, 0))
	must(t, errors.Join(err, v.Close()))
	whole, err := os.ReadFile(path)
	must(t, err)
	try := func(content []byte) error {
		must(t, os.WriteFile(path, content, 0o600))
		a, err := vault.OpenArchive(path)
		if err != nil {
			return err
		}
		defer a.Close()
		ids, err := a.Backups()
		must(t, err)
		return a.Verify(context.Background(), ids[0], func(int64) {})
	}
	must(t, try(whole))
	for i := range whole {
		broken := slices.Clone(whole)
		broken[i] ^= 1 << (i % 8)
		if try(broken) == nil {
			t.Fatalf("byte %d of %d is another, and nobody noticed", i, len(whole))
		}
	}
	for i := 0; i < len(whole); i += 37 {
		if try(whole[:i]) == nil {
			t.Fatalf("it ends after %d of %d bytes, and nobody noticed", i, len(whole))
		}
	}
	if try(append(slices.Clone(whole), 0)) == nil {
		t.Error("something follows, and nobody noticed")
	}
}

// TestDamageNamesFile: the message names the damaged file.
func TestDamageNamesFile(t *testing.T) {
	dir, at := t.TempDir(), t.TempDir()
	writeTree(t, dir)
	file := filepath.Join(at, "file")
	for _, where := range []string{file, filepath.Join(at, "dir") + "/"} {
		v, err := vault.Write(where)
		must(t, err)
		r, err := kept(t, v, dir, time.Unix(1, 0))
		must(t, err)
		block := blockWith(t, v, []byte("some text\n"))
		must(t, v.Close())
		damage(t, where, block)
		v, id, err := vault.Open(where)
		must(t, err)
		err = v.Verify(t.Context(), r.ID, func(int64) {})
		if err == nil || !strings.Contains(err.Error(), blockPath(block)) ||
			!strings.Contains(err.Error(), "which holds private/1/") {
			t.Errorf("%s%s: %v", where, id, err)
		}
		if problem.ExitCode(err) != int(problem.Failed) {
			t.Errorf("exit status %d", problem.ExitCode(err))
		}
		must(t, v.Close())
	}
}

// damage changes the last byte of a block.
func damage(t *testing.T, where string, block vault.Digest) {
	t.Helper()
	path, at := filepath.Join(where, blockPath(block)), int64(0)
	if f, err := os.Open(where); err == nil && !strings.HasSuffix(where, "/") {
		members, name := tar.NewReader(f), blockPath(block)
		for path = where; err == nil && name != ""; {
			var h *tar.Header
			if h, err = members.Next(); err == nil && h.Name == name {
				at, err = f.Seek(h.Size-1, io.SeekCurrent)
				name = ""
			}
		}
		must(t, errors.Join(err, f.Close()))
	} else {
		info, err := os.Stat(path)
		must(t, err)
		at = info.Size() - 1
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	must(t, err)
	one := make([]byte, 1)
	_, err = f.ReadAt(one, at)
	must(t, err)
	one[0]++
	_, err = f.WriteAt(one, at)
	must(t, errors.Join(err, f.Close()))
}

// TestResume: complete blocks of a killed run are used, and incomplete ones are not.
func TestResume(t *testing.T) {
	dir, path := t.TempDir(), filepath.Join(t.TempDir(), "file")
	writeTree(t, dir)
	v, err := vault.WriteArchive(path)
	must(t, err)
	pack := vault.NewPacker(v)
	w := &walk{ctx: t.Context(), source: &Source{Dir: dir}, pack: pack, buffer: make([]byte, vault.PieceSize),
		saw: func(int64) {}}
	_, err = w.run()
	must(t, errors.Join(err, pack.Close(), v.Close()))
	f, err := os.OpenFile(path+".part", os.O_WRONLY|os.O_APPEND, 0)
	must(t, err)
	_, err = f.WriteString("half a head")
	must(t, errors.Join(err, f.Close()))
	v, err = vault.WriteArchive(path)
	must(t, err)
	r, err := kept(t, v, dir, time.Unix(1, 0))
	must(t, errors.Join(err, v.Close()))
	if r.Wrote > 4096 {
		t.Errorf("%d bytes were written again", r.Wrote)
	}
	again, err := vault.OpenArchive(path)
	must(t, err)
	must(t, again.Verify(t.Context(), r.ID, func(int64) {}))
	wantSame(t, dir, back(t, again, r.ID))
	if _, err := vault.WriteArchive(path); problem.ExitCode(err) != int(problem.Usage) {
		t.Errorf("an archive that is there: %v", err)
	}
}

// TestLinkInTheWay: a list that would write through a link that it has created does not leave its
// directory.
func TestLinkInTheWay(t *testing.T) {
	outside := t.TempDir()
	v, err := vault.WriteRepository(filepath.Join(t.TempDir(), "r"))
	must(t, err)
	defer v.Close()
	pack := vault.NewPacker(v)
	list, err := vault.WriteList([]vault.Entry{
		{Entry: treesync.Entry{Name: ".", Mode: unix.S_IFDIR | 0o755}},
		{Entry: treesync.Entry{Name: "x", Mode: unix.S_IFLNK | 0o777, Link: treesync.Name(outside)}},
		{Entry: treesync.Entry{Name: "x/file", Mode: unix.S_IFREG | 0o644}},
	})
	must(t, err)
	tree := &vault.Tree{Name: "t", Kind: vault.PrivateTree}
	tree.List, err = pack.AddAll(list)
	must(t, errors.Join(err, pack.Close()))
	if err := stageTree(t.Context(), vault.NewPieces(v), tree, filepath.Join(t.TempDir(), "to"), func(int64) {},
		func(string) {}); err == nil {
		t.Error("it was laid down")
	}
	if names, _ := os.ReadDir(outside); len(names) > 0 {
		t.Errorf("it came out: %v", names)
	}
}

func TestPrune(t *testing.T) {
	dir, at := t.TempDir(), filepath.Join(t.TempDir(), "backups")
	w, err := vault.WriteRepository(at)
	must(t, err)
	defer w.Close()
	var last *Report
	for n := range 3 {
		content := make([]byte, vault.PieceSize)
		for i := range content {
			content[i] = byte(i*n + i>>8)
		}
		must(t, os.WriteFile(filepath.Join(dir, "file"), content, 0o600))
		last, err = kept(t, w, dir, time.Unix(int64(n), 0))
		must(t, err)
	}
	before := len(blocksOfRepository(t, at))
	gone, freed, err := w.Prune(1)
	must(t, err)
	if left := len(blocksOfRepository(t, at)); len(gone) != 2 || freed == 0 || left >= before {
		t.Errorf("pruned %v, %d bytes; %d blocks of %d are left", gone, freed, left, before)
	}
	r, err := vault.WriteRepository(t.TempDir())
	must(t, err)
	must(t, r.Close())
	must(t, w.Close())
	again, err := vault.OpenRepository(at)
	must(t, err)
	defer again.Close()
	must(t, again.Verify(t.Context(), last.ID, func(int64) {}))
}
