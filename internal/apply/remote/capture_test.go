package remote_test

import (
	"context"
	"errors"
	"os"
	"testing"
	"time"

	"orrery/internal/apply"
	"orrery/internal/engine"
	"orrery/internal/observe"
	"orrery/internal/snapshot"
)

// A halting pace calls a function once the nodes are frozen.
type halting struct{ stood func() error }

func (halting) Copied(context.Context) (time.Time, error)                        { return time.Time{}, nil }
func (h halting) Stood(context.Context, engine.Pause) error                      { return h.stood() }
func (halting) Went(context.Context, engine.Pause) (all snapshot.All, err error) { return all, nil }

// TestCaptureEnds: if another host fails or the control host is gone, frozen nodes are resumed, and
// nothing is left of the snapshot.
func TestCaptureEnds(t *testing.T) {
	for what, wrong := range map[string]func(p *pair) error{
		"another host fails": func(*pair) error { return errors.New("sv3 is full") },
		"the line is cut":    func(p *pair) error { return p.line.Close() },
	} {
		p := newPair(t)
		p.up(p.load())
		nodes, err := p.far.Nodes.List(t.Context())
		must(t, err)
		of := apply.SnapshotRequest{ID: "one", Who: "ada"}
		for _, n := range nodes {
			of.Nodes = append(of.Nodes, n.ID)
		}
		froze := false
		_, err = p.far.Snapshots.Capture(t.Context(), of, halting{func() error {
			now, err := p.near.Worker.Nodes.List(t.Context())
			must(t, err)
			froze = now[0].State == observe.Frozen
			return wrong(p)
		}})
		if err == nil || !froze {
			t.Errorf("%s: nodes stood still: %v; %v", what, froze, err)
		}
		p.link.Close()
		must(t, <-p.ended) // by then, everything on the helper has ended
		now, err := p.near.Worker.Nodes.List(t.Context())
		must(t, err)
		for _, n := range now {
			if n.State != observe.Running {
				t.Errorf("%s: node %s is %s", what, n.Name, n.State)
			}
		}
		if left, _ := os.ReadDir(p.dirs.Snapshots("s")); len(left) > 0 {
			t.Errorf("%s: left are %v", what, left)
		}
	}
}
