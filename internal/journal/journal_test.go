package journal

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"golang.org/x/sys/unix"

	"orrery/test/need"
)

// TestLongEntry checks that long output of a node neither fills the journal nor makes it
// unreadable.
//
// Promise (What others print and answer): A node's output cannot make the journal unreadable or
// long; a node that hangs delays no verdict on others. With drift.TestRound.
func TestLongEntry(t *testing.T) {
	path := filepath.Join(t.TempDir(), "site", "journal.jsonl")
	j, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	flood := "beginning " + strings.Repeat("\x01é", 2<<20) + " end"
	for _, e := range []Entry{{Kind: "begin", Command: "orrery up"}, {Kind: "step", Step: flood, Result: flood},
		{Kind: "end", Who: flood, Command: flood, Result: flood}} {
		e.Time = time.Now()
		if err := j.Add(e); err != nil {
			t.Fatal(err)
		}
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	if info, _ := os.Stat(path); info.Size() > 3*maxEntryBytes {
		t.Errorf("the journal has %d bytes", info.Size())
	}
	all, damaged, err := Read(path)
	if err != nil || len(all) != 3 || len(damaged) != 0 {
		t.Fatalf("%d entries, damaged %v: %v", len(all), damaged, err)
	}
	got := all[1].Result
	if !strings.HasPrefix(got, "beginning ") || !strings.HasSuffix(got, " end") ||
		!strings.Contains(got, "bytes left out") || !utf8.ValidString(got) {
		t.Errorf("of the result is left %q", got)
	}
}

// TestDamaged checks that unreadable lines are reported by number and do not hide others. An empty
// line is not damage, and a truncated last line does not damage the next one.
func TestDamaged(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	text := `{"kind":"begin","who":"ada"}` + "\n" + strings.Repeat("x", 3<<20) + "\n" + `{"kind":"step","step":"one"}` +
		"\n\n\x00\x00\n{}\n" + `{"kind":"st`
	if err := os.WriteFile(path, []byte(text), 0o640); err != nil {
		t.Fatal(err)
	}
	j, err := Open(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := j.Add(Entry{Kind: "end", Result: "done"}); err != nil {
		t.Fatal(err)
	}
	if err := j.Close(); err != nil {
		t.Fatal(err)
	}
	all, damaged, err := Read(path)
	if err != nil || len(all) != 3 || all[0].Who != "ada" || all[1].Step != "one" || all[2].Result != "done" ||
		!slices.Equal(damaged, []int{2, 5, 6, 7}) {
		t.Errorf("entries %+v, damaged %v: %v", all, damaged, err)
	}
}

// TestFullDisk checks that entries can be written on a full disk.
func TestFullDisk(t *testing.T) {
	need.Integration(t)
	small := t.TempDir()
	if err := unix.Mount("orrery-test", small, "tmpfs", 0, "size=256k"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Unmount(small, unix.MNT_DETACH) })
	path := filepath.Join(small, "journal.jsonl")
	add := func(e Entry) {
		t.Helper()
		j, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := j.Add(e); err != nil {
			t.Error(err)
		}
		if err := j.Close(); err != nil {
			t.Error(err)
		}
	}
	add(Entry{Kind: "begin", Command: "orrery up"})
	if err := os.WriteFile(filepath.Join(small, "ballast"), make([]byte, 1<<20), 0o600); err == nil {
		t.Fatal("the disk has no end")
	}
	for range 100 {
		add(Entry{Kind: "begin", Command: "orrery down " + strings.Repeat("n", 200)})
	}
	if all, _, err := Read(path); err != nil || len(all) != 101 {
		t.Errorf("%d entries: %v", len(all), err)
	}
}
