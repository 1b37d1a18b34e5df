package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"orrery/internal/engine"
	"orrery/internal/engine/fake"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// ice is an engine that can freeze nodes.
type ice struct {
	engine.Engine
	nodes    []observe.Node
	frozen   [10]int // how often frozen, minus how often thawed
	stubborn string  // the method that fails for node 2
}

func (e *ice) List(context.Context, string) ([]observe.Node, error) {
	if e.stubborn == "List" {
		return nil, errors.New("List fails")
	}
	return e.nodes, nil
}

func (e *ice) Freeze(_ context.Context, ref engine.Ref) error { return e.turn("Freeze", ref, 1) }
func (e *ice) Thaw(ctx context.Context, ref engine.Ref) error {
	return errors.Join(ctx.Err(), e.turn("Thaw", ref, -1))
}

func (e *ice) turn(method string, ref engine.Ref, by int) error {
	if e.stubborn == method && ref.ID == 2 {
		return errors.New(method + " fails")
	}
	e.frozen[ref.ID] += by
	return nil
}

func glacier(stubborn string) (*ice, []*spec.Node) {
	e := &ice{stubborn: stubborn}
	var nodes []*spec.Node
	for id, state := range []observe.State{1: observe.Running, observe.Frozen, observe.Stopped, observe.Broken,
		observe.Running} {
		if id > 0 {
			e.nodes = append(e.nodes, observe.Node{Node: spec.Node{ID: id, Name: fmt.Sprint("n", id), Engine: "ice"},
				State: state})
			nodes = append(nodes, &e.nodes[id-1].Node)
		}
	}
	return e, nodes
}

// TestRunning: Running returns running and frozen nodes. If an engine cannot list its nodes,
// Running returns an error rather than no nodes.
func TestRunning(t *testing.T) {
	e, _ := glacier("")
	engines := map[string]engine.Engine{"ice": e}
	running, err := engine.Running(t.Context(), engines, "karoo")
	if err != nil || len(running) != 3 || running[0].ID != 1 || running[1].ID != 2 || running[2].ID != 5 {
		t.Errorf("%v (%v)", running, err)
	}
	e.stubborn = "List"
	if _, err := engine.Running(t.Context(), engines, "karoo"); err == nil ||
		!strings.Contains(err.Error(), "List fails") {
		t.Errorf("an engine that cannot tell gives %v", err)
	}
}

// TestStill: nodes are frozen while do runs, and are thawed whatever goes wrong.
func TestStill(t *testing.T) {
	for _, stubborn := range []string{"", "Freeze", "do"} {
		e, nodes := glacier(stubborn)
		done := false
		ctx, cancel := context.WithCancel(t.Context())
		p, err := engine.WhileFrozen(ctx, map[string]engine.Engine{"ice": e}, nodes[:3], func(context.Context) error {
			done = true
			cancel() // the nodes are thawed nevertheless
			if e.frozen != [10]int{1: 1, 2: 1, 3: 1} {
				t.Errorf("frozen are %v", e.frozen)
			}
			if stubborn == "do" {
				return errors.New("do fails")
			}
			return nil
		})
		cancel()
		if (err != nil) != (stubborn != "") || done == (stubborn == "Freeze") {
			t.Errorf("%s: %v", stubborn, err)
		}
		if e.frozen[1] != 0 || e.frozen[2] > 0 || e.frozen[3] != 0 {
			t.Errorf("%s: frozen are %v", stubborn, e.frozen)
		}
		if p.Long <= 0 || p.Skew > p.Long || stubborn == "" && p.At.IsZero() {
			t.Errorf("%s: %+v", stubborn, p)
		}
	}
	e, nodes := glacier("Thaw")
	_, err := engine.WhileFrozen(t.Context(), map[string]engine.Engine{"ice": e}, nodes[:3],
		func(context.Context) error { return nil })
	if problem.ExitCode(err) != int(problem.Left) || !strings.Contains(err.Error(), "n2 is still frozen") {
		t.Errorf("a node that does not thaw gives %v", err)
	}
}

// TestStillRefuses: if one node cannot be frozen, WhileFrozen does not go on without it.
func TestStillRefuses(t *testing.T) {
	e, nodes := glacier("")
	nodes[1].Engine = "stone"
	engines := map[string]engine.Engine{"ice": e, "stone": struct{ engine.Engine }{fake.New()}}
	_, err := engine.WhileFrozen(t.Context(), engines, nodes[:2], func(context.Context) error {
		t.Error("it was done")
		return nil
	})
	if problem.ExitCode(err) != int(problem.Unable) || e.frozen != [10]int{} {
		t.Errorf("%v, frozen %v", err, e.frozen)
	}
}

// soaked is ice whose nodes all have something to write before they freeze.
type soaked struct {
	*ice
	flushed atomic.Int32
	before  []int32 // how many nodes had flushed when this one was frozen
}

func (e *soaked) Flush(context.Context, engine.Ref) { e.flushed.Add(1) }

func (e *soaked) Freeze(ctx context.Context, ref engine.Ref) error {
	e.before[ref.ID] = e.flushed.Load()
	return e.ice.Freeze(ctx, ref)
}

// TestStillFlushes: all nodes flush before the first one is frozen.
func TestStillFlushes(t *testing.T) {
	ice, nodes := glacier("")
	e := &soaked{ice: ice, before: make([]int32, 10)}
	if _, err := engine.WhileFrozen(t.Context(), map[string]engine.Engine{"ice": e}, nodes,
		func(context.Context) error { return nil }); err != nil {
		t.Fatal(err)
	}
	for _, n := range nodes {
		if got := e.before[n.ID]; got != int32(len(nodes)) {
			t.Errorf("node %s stood still when %d of %d nodes had written", n.Name, got, len(nodes))
		}
	}
}
