package snapshots

import (
	"slices"
	"testing"

	"orrery/internal/control"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/snapshot"
)

// asked is a Confirmer that refuses one kind of consent and records the questions.
type asked struct {
	refuses control.Consent
	all     []control.Consent
}

func (a *asked) Ask(q control.Question) (bool, error) {
	if a.all = append(a.all, q.About); q.About == a.refuses {
		return true, problem.New(problem.Refused, "no")
	}
	return true, nil
}

func node(id int, name string) snapshot.Node {
	r := nodedir.Record{}
	r.Node = spec.Node{ID: id, Name: name}
	return snapshot.Node{Record: &r, Running: true}
}

func restoringOf(t *testing.T, nodes ...snapshot.Node) (*restoreOp, *asked) {
	t.Helper()
	asker := &asked{}
	c := &control.Session{Dirs: host.Dirs{State: t.TempDir(), Run: t.TempDir()}, Confirmer: asker}
	s := &site.Site{Name: "karoo", Production: true, Nodes: []site.Node{{Name: "web", ID: 11}}}
	f, err := c.Hosts(t.Context(), s)
	if err != nil {
		t.Fatal(err)
	}
	h := f.All[0]
	r := &restoreOp{Session: c, site: s, fleet: f,
		from: mergeParts(f, map[string]*snapshot.Snapshot{h.Name: {ID: "20260730-120000", Site: "karoo", Nodes: nodes}})}
	for _, n := range nodes {
		r.nodes = append(r.nodes, placed{n, h.Name})
	}
	return r, asker
}

// TestAgree: restoring needs consent to lose what was written since, and in production a second
// consent.
func TestAgree(t *testing.T) {
	r, asker := restoringOf(t, node(11, "web"))
	if err := r.askConsent(); err != nil ||
		!slices.Equal(asker.all, []control.Consent{control.Restore, control.Production}) {
		t.Errorf("asked was for %v: %v", asker.all, err)
	}
	for _, refuses := range []control.Consent{control.Restore, control.Production} {
		asker.refuses = refuses
		if err := r.askConsent(); problem.ExitCode(err) != int(problem.Refused) {
			t.Errorf("although %s is refused: %v", refuses, err)
		}
	}
}

// TestStarts: only nodes that ran at that time are started. Only nodes that were whole then and are
// still declared are checked.
func TestStarts(t *testing.T) {
	web, gone, fresh, still := node(11, "web"), node(12, "gone"), node(13, "fresh"), node(14, "still")
	web.Record.Configured, gone.Record.Configured = true, true
	still.Running = false
	r, _ := restoringOf(t, web, gone, fresh, still)
	var got []string
	for _, s := range r.startSteps() {
		got = append(got, string(s.Kind)+" "+s.Subject)
		for _, need := range s.Needs {
			if need != len(got)-2 {
				t.Errorf("%s needs step %d", s.Subject, need)
			}
		}
	}
	start, check := string(plan.StartNode)+" ", string(plan.CheckNode)+" "
	if want := []string{start + "web", check + "web", start + "gone", start + "fresh"}; !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	// the former node continues with what is there
	gone.Record.VM.Disks = []site.Drive{{Name: "data", Disk: "/dev/vg/lv"}}
	still.Record.Mounts = []spec.Mount{{Volume: "data", Path: "/srv/data"}} // the volume is restored
	for i, s := range r.stopRestoredSteps() {
		want := plan.KillNode
		if s.Subject == "gone" {
			want = plan.StopNode
		}
		if s.Kind != want || len(r.stopRestoredSteps()) != 4 {
			t.Errorf("step %d before all is put back: %s %s, want %s", i, s.Kind, s.Subject, want)
		}
	}
	r.ran = []running{{&observe.Node{Node: spec.Node{Name: "web"}}, "local"}}
	if steps := r.stopSteps(); len(steps) != 1 || steps[0].Kind != plan.StopNode {
		t.Errorf("stopped are: %v", steps)
	}
}

// TestNoneOfThem: restoring fails for nodes that are not in the snapshot, and removing fails for
// unknown snapshots.
func TestNoneOfThem(t *testing.T) {
	r, _ := restoringOf(t)
	if err := r.checkAll(t.Context()); problem.ExitCode(err) != int(problem.Usage) {
		t.Error(err)
	}
	if all, err := List(t.Context(), r.Session, r.site); err != nil || len(all) > 0 {
		t.Errorf("%v, %v", all, err)
	}
}
