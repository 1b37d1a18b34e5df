package control

import (
	"context"
	"strings"
	"testing"

	"orrery/internal/host"
	"orrery/internal/journal"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// TestUndoInJournal: the journal has the steps that undid a run, with their results, like the steps
// that were done.
func TestUndoInJournal(t *testing.T) {
	dir := t.TempDir()
	a := &Session{Watcher: silent{}, Dirs: host.Dirs{State: dir, Run: dir}, Command: "orrery switch"}
	s := &site.Site{Name: "karoo"}
	f, err := a.HostsWithoutReleases(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	j := &Job{Session: a, Site: s, Hosts: f, Undo: true, Parallel: 1}
	p := &plan.Plan{Site: s.Name, Steps: []*plan.Step{
		{Kind: plan.CommitSwitch, Host: "local", Subject: "web",
			Releases: &observe.Releases{Active: map[string]int{"web": 701}}, OldReleases: &observe.Releases{}},
		{N: 1, Kind: plan.StartNode, Host: "local", Subject: "web", Node: &spec.Node{Name: "web", Engine: "none"},
			Needs: []int{0}},
	}}
	_, err = j.apply(context.Background(), p)
	if problem.ExitCode(err) != int(problem.Left) { // a node that failed to start cannot be stopped either
		t.Errorf("it ended with %v", err)
	}
	entries, _, err := journal.Read(a.Dirs.Journal(s.Key()))
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		result, _, _ := strings.Cut(e.Result, " ")
		got = append(got, e.Kind+" "+result)
		if e.Run != entries[0].Run {
			t.Errorf("%+v is of another run", e)
		}
	}
	if want := "begin |step done|step node|undo node|end failed,"; strings.Join(got, "|") != want {
		t.Errorf("the journal holds %q, not %q", strings.Join(got, "|"), want)
	}
}
