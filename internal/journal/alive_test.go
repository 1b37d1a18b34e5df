package journal

import (
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// TestState checks that a run without an end is running while its journal is open, and killed when it is
// closed without one, even after a rotation. An end on one of several hosts ends the run.
func TestState(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal.jsonl")
	begin := func(run string) *Journal {
		j, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = j.Close() })
		if err := j.Add(Entry{Time: time.Now(), Run: run, Kind: "begin", Command: "orrery up"}); err != nil {
			t.Fatal(err)
		}
		return j
	}
	states := func() string {
		all, _, err := Read(path)
		if err != nil {
			t.Fatal(err)
		}
		var words []string
		for _, e := range all {
			if e.Kind == "begin" {
				words = append(words, e.Run+":"+e.State)
			}
		}
		return strings.Join(words, " ")
	}
	one, two := begin("18d1"), begin("18d2")
	if got := states(); got != "18d1:running 18d2:running" {
		t.Errorf("of two open runs: %s", got)
	}
	if err := one.Add(Entry{Time: time.Now(), Run: "18d1", Kind: "end", Result: "done"}); err != nil {
		t.Fatal(err)
	}
	_ = one.Close()
	defer func(old int64) { maxFileBytes = old }(maxFileBytes)
	maxFileBytes = 1
	begin("18d3")
	if got := states(); got != "18d1: 18d2:running 18d3:running" {
		t.Errorf("after a rotation: %s", got)
	}
	_ = two.Close() // as the kernel does when the process is killed
	if got := states(); got != "18d1: 18d2:killed 18d3:running" {
		t.Errorf("after one was cut off: %s", got)
	}
}

// TestMergedState checks that a run over hosts is running while any host says so, and has no state if any
// host has recorded its end.
func TestMergedState(t *testing.T) {
	at := time.Unix(1, 0)
	begin := func(state string) Entry { return Entry{Time: at, Run: "a", Kind: "begin", State: state} }
	end := Entry{Time: at.Add(1), Run: "a", Kind: "end", Result: "done"}
	for want, journals := range map[string][][]Entry{
		Running: {{begin(Killed)}, {begin(Running)}},
		Killed:  {{begin(Killed)}, {begin(Killed)}},
		"":      {{begin(""), end}, {begin(Killed)}},
	} {
		if all := Merge([]string{"sv1", "sv2"}, journals); all[0].State != want {
			t.Errorf("the state is %q, not %q", all[0].State, want)
		}
	}
}

// TestForeignState checks that a state that is none is not taken from another host.
func TestForeignState(t *testing.T) {
	all, _, _, err := Decode(strings.NewReader(`{"kind":"begin","state":"killed"}` + "\n" +
		`{"kind":"begin","state":"\u001b[2J"}` + "\n" + `{"kind":"end","state":"killed"}` + "\n"))
	if err != nil || len(all) != 3 || all[0].State != Killed || all[1].State != "" || all[2].State != "" {
		t.Errorf("decoded are %+v: %v", all, err)
	}
}
