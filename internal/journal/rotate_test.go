package journal

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"testing"
)

// TestRotate checks that a journal is limited, is read across its rotated files, and loses no entry
// of a process that has it open during the rotation.
func TestRotate(t *testing.T) {
	small(t, 2<<10)
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	long, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	add(t, long, "first")
	for n := range 60 { // more than two full files
		one, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		add(t, one, fmt.Sprint(n))
	}
	add(t, long, "last of the first")
	all, damaged, err := Read(path)
	if err != nil || len(damaged) > 0 || len(all) != 62 {
		t.Fatalf("there are %d entries: %v, %v", len(all), damaged, err)
	}
	if _, err := os.Stat(rotatedPath(path, 1)); err != nil {
		t.Fatal(err)
	}
	seen := -1
	for _, e := range all {
		var n int
		if _, err := fmt.Sscan(e.Step, &n); err != nil {
			continue
		}
		if n != seen+1 {
			t.Fatalf("%d comes after %d", n, seen)
		}
		seen = n
	}
	for n := range 1000 {
		one, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		add(t, one, fmt.Sprint(n))
		if err := one.Close(); err != nil {
			t.Fatal(err)
		}
	}
	files, _ := filepath.Glob(path + "*")
	if len(files) != maxRotated+1 {
		t.Errorf("there are %v", files)
	}
	for _, file := range files {
		if info, err := os.Stat(file); err != nil || info.Size() > 2*maxFileBytes {
			t.Errorf("%s: %d bytes, %v", file, info.Size(), err)
		}
	}
}

// TestRotateAtOnce checks that if several processes open a journal that is too large, one of them
// rotates it, and no entry is lost.
func TestRotateAtOnce(t *testing.T) {
	small(t, 20<<10)
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	var all sync.WaitGroup
	for w := range 8 {
		all.Go(func() {
			for n := range 20 {
				j, err := Open(path)
				if err == nil {
					err = j.Add(Entry{Kind: "step", Step: fmt.Sprintf("%d/%d", w, n)})
				}
				if err != nil {
					t.Error(err)
					return
				}
				_ = j.file.Close()
			}
		})
	}
	all.Wait()
	entries, damaged, err := Read(path)
	if err != nil || len(entries) != 160 || len(damaged) > 0 {
		t.Errorf("there are %d entries: %v, %v", len(entries), damaged, err)
	}
}

func small(t *testing.T, size int64) {
	old := maxFileBytes
	maxFileBytes = size
	t.Cleanup(func() { maxFileBytes = old })
}

func add(t *testing.T, j *Journal, step string) {
	t.Helper()
	if err := j.Add(Entry{Kind: "step", Step: step}); err != nil {
		t.Fatal(err)
	}
}
