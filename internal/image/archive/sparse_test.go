package archive

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"orrery/internal/problem"
	"orrery/internal/tree"
)

// holed creates files with holes, and others between them whose lengths are not multiples of a
// block.
func holed(t *testing.T) (dir string) {
	t.Helper()
	dir = t.TempDir()
	for name, data := range map[string]map[int64]string{
		"1-before":                         {0: "some text"},
		"2-one-byte":                       {3 << 30: "x"},
		"3-only-a-hole":                    {},
		"4-data-first":                     {0: "begin"},
		"5-many":                           many(500),
		"6-" + strings.Repeat("long", 50):  {1 << 30: "y"},
		"7-" + strings.Repeat("deep/", 40): {1 << 20: strings.Repeat("z", 9999)},
		"8-after":                          {0: "more text"},
	} {
		at := filepath.Join(dir, name)
		if strings.HasSuffix(name, "/") {
			at += "/f"
		}
		size := int64(4<<30 + 1)
		if strings.HasSuffix(name, "before") || strings.HasSuffix(name, "after") {
			size = 9
		}
		must(t, os.MkdirAll(filepath.Dir(at), 0o755))
		f, err := os.Create(at)
		must(t, err)
		for where, text := range data {
			_, err := f.WriteAt([]byte(text), where)
			must(t, err)
		}
		must(t, errors.Join(f.Truncate(size), f.Close()))
	}
	return dir
}

func many(n int) map[int64]string {
	all := map[int64]string{}
	for i := range n {
		all[int64(i)<<20] = fmt.Sprint(i)
	}
	return all
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestSparse: files with holes are extracted as they were, in every format that tar writes.
func TestSparse(t *testing.T) {
	from := holed(t)
	for _, format := range [][]string{
		{"--format=gnu"}, {"--format=posix", "--sparse-version=0.0"}, {"--format=posix", "--sparse-version=0.1"},
		{"--format=posix", "--sparse-version=1.0"},
	} {
		t.Run(strings.Join(format, " "), func(t *testing.T) {
			file := filepath.Join(t.TempDir(), "r.tar")
			if said, err := exec.Command("tar", append(format, "-S", "--sort=name", "-C", from, "-cf", file,
				".")...).CombinedOutput(); err != nil {
				t.Fatal(string(said))
			}
			to := filepath.Join(t.TempDir(), "tree")
			must(t, Unpack(t.Context(), file, to, t.TempDir(), 64<<20))
			files := 0
			must(t, filepath.WalkDir(from, func(at string, d os.DirEntry, err error) error {
				if err == nil && !d.IsDir() {
					files++
					name, _ := filepath.Rel(from, at)
					sameHoles(t, at, filepath.Join(to, name))
				}
				return err
			}))
			if files != 8 {
				t.Errorf("%d files were compared", files)
			}
		})
	}
}

// sameHoles compares the data and the disk usage of two files.
func sameHoles(t *testing.T, want, got string) {
	t.Helper()
	a, err := os.Open(want)
	must(t, err)
	defer a.Close()
	b, err := os.Open(got)
	must(t, err)
	defer b.Close()
	var gotStat, wantStat syscall.Stat_t
	must(t, errors.Join(syscall.Fstat(int(a.Fd()), &wantStat), syscall.Fstat(int(b.Fd()), &gotStat)))
	if gotStat.Size != wantStat.Size || gotStat.Blocks > wantStat.Blocks+16 {
		t.Errorf("%.40s has %d bytes in %d blocks, not %d in %d", filepath.Base(got), gotStat.Size, gotStat.Blocks,
			wantStat.Size,
			wantStat.Blocks)
	}
	for _, data := range []*os.File{a, b} {
		must(t, tree.EachData(int(data.Fd()), wantStat.Size, func(at, end int64) error {
			one, other := make([]byte, end-at), make([]byte, end-at)
			_, err1 := a.ReadAt(one, at)
			_, err2 := b.ReadAt(other, at)
			if !bytes.Equal(one, other) {
				t.Errorf("%.40s is not the same from %d to %d", filepath.Base(got), at, end)
			}
			return errors.Join(err1, err2)
		}))
	}
}

// damaged returns an archive with one sparse file in which some text is replaced.
func damaged(t *testing.T, format, from, to string) (file string) {
	t.Helper()
	dir := t.TempDir()
	f, err := os.Create(filepath.Join(dir, "f"))
	must(t, err)
	_, err = f.WriteAt([]byte("x"), 1<<20)
	must(t, errors.Join(err, f.Truncate(2<<20), f.Close()))
	text, err := exec.Command("tar", "--format="+format, "-S", "-C", dir, "-cf", "-", "f").Output()
	must(t, err)
	if !bytes.Contains(text, []byte(from)) {
		t.Fatalf("no %q in the archive", from)
	}
	file = filepath.Join(dir, "r.tar")
	must(t, os.WriteFile(file, bytes.Replace(text, []byte(from), []byte(to), 1), 0o644))
	return file
}

// TestSparseOfStrangers: an impossible list of a file's data is rejected, and so is one that ends
// too early or exceeds the disk.
func TestSparseOfStrangers(t *testing.T) {
	whole := damaged(t, "posix", "\n1048576\n", "\n1048576\n")
	text, err := os.ReadFile(whole)
	must(t, err)
	short := filepath.Join(t.TempDir(), "short.tar")
	must(t, os.WriteFile(short, text[:bytes.Index(text, []byte("\n1048576\n"))&^511+600], 0o644))
	for name, test := range map[string]struct {
		file string
		free int64
	}{
		"beyond the end":     {damaged(t, "posix", "\n1048576\n", "\n9999999\n"), 64 << 20},
		"more than is there": {damaged(t, "posix", "\n4096\n", "\n9096\n"), 64 << 20},
		"cut short":          {short, 64 << 20},
		"no room":            {whole, 2048},
	} {
		var p *problem.Problem
		err := Unpack(t.Context(), test.file, filepath.Join(t.TempDir(), "tree"), t.TempDir(), test.free)
		if !errors.As(err, &p) {
			t.Errorf("%s: %v", name, err)
		}
		t.Log(err)
	}
}

// TestUnpackEnds: reading an endless archive stops when its context ends.
func TestUnpackEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		time.AfterFunc(time.Second, cancel)
		b := newBounds(1 << 50)
		_, err := io.Copy(io.Discard, b.reader(ctx, slow{}))
		if !errors.Is(err, context.Canceled) {
			t.Error(err)
		}
	})
}

// slow is an archive that sends a little at a time and never ends.
type slow struct{}

func (slow) Read(p []byte) (int, error) {
	time.Sleep(time.Millisecond)
	return len(p), nil
}

// FuzzSparse: whatever an archive says about a file with holes, the data is where archive/tar reads
// it.
func FuzzSparse(f *testing.F) {
	for _, format := range [][]string{{"--format=gnu"}, {"--format=posix", "--sparse-version=0.0"},
		{"--format=posix", "--sparse-version=1.0"}} {
		dir := f.TempDir()
		file, err := os.Create(filepath.Join(dir, "f"))
		if err == nil {
			for i := range int64(6) {
				_, err = file.WriteAt([]byte("text"), i<<13)
			}
		}
		if err = errors.Join(err, file.Truncate(1<<16), file.Close()); err != nil {
			f.Fatal(err)
		}
		text, err := exec.Command("tar", append(format, "-S", "-C", dir, "-cf", "-", "f", "f")...).Output()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		theirs := tar.NewReader(bytes.NewReader(text))
		_ = entries(bytes.NewReader(text), newBounds(1<<30), func(h *tar.Header, content io.Reader) error {
			other, err := theirs.Next()
			if err != nil || h.Size > 1<<20 {
				return io.EOF
			}
			want, err := io.ReadAll(theirs)
			if err != nil || other.Name != h.Name {
				return io.EOF // the data ends too early, or the two see different headers after data that is in no list
			}
			got := make([]byte, h.Size)
			if holed, ok := content.(*sparse); ok {
				to, err := os.CreateTemp(t.TempDir(), "")
				must(t, err)
				defer to.Close()
				must(t, holed.fill(to))
				_, err = to.ReadAt(got, 0)
				if err != nil && !errors.Is(err, io.EOF) {
					t.Fatal(err)
				}
			} else if _, err := io.ReadFull(content, got[:len(want)]); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(got[:len(want)], want) {
				t.Errorf("%q: other content", h.Name)
			}
			return nil
		})
	})
}
