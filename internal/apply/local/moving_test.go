package local

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"

	"orrery/internal/apply/local/backends"
	"orrery/internal/engine"
	"orrery/internal/network"
	"orrery/internal/plan"
	"orrery/internal/site/spec"
)

// links is networks that only move links, or fail to.
type links struct {
	backends.Networks
	failure error
}

func (l links) MoveLinks(context.Context, []network.Move, ...string) error { return l.failure }

// changed is an engine that records which nodes were changed, and fails for one of them.
type changed struct {
	engine.Engine
	mu    *sync.Mutex
	told  *[]int
	fails int // the id of a node
}

func (c changed) Change(_ context.Context, n *spec.Node) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	*c.told = append(*c.told, n.ID)
	if n.ID == c.fails {
		return errors.New("it cannot be recorded")
	}
	return nil
}

// TestLiveFirst: when links have moved, the nodes that are now live are recorded before those in
// quarantine, for which no client waits. A node that cannot be recorded is an error, but does not
// prevent others from being recorded. If no link has moved, nothing is recorded.
func TestLiveFirst(t *testing.T) {
	moves := []plan.Move{
		{New: &spec.Node{ID: 1, Name: "web", Engine: "fake", Staged: true}}, {New: &spec.Node{ID: 7001,
			Name: "web", Engine: "fake"}},
		{New: &spec.Node{ID: 2, Name: "db", Engine: "fake", Staged: true}}, {New: &spec.Node{ID: 7002,
			Name: "db", Engine: "fake"}},
	}
	for what, c := range map[string]struct {
		links error
		fails int
		told  []int
		wrong bool
	}{
		"all move":                  {told: []int{7001, 7002, 1, 2}},
		"one that is live cannot":   {fails: 7001, told: []int{7001, 7002, 1, 2}, wrong: true},
		"one in quarantine cannot":  {fails: 2, told: []int{7001, 7002, 1, 2}, wrong: true},
		"the links cannot be moved": {links: errors.New("no such bridge"), wrong: true},
	} {
		var told []int
		w := ThisMachine("sv1", "karoo", newRemoval(t).dirs[0],
			map[string]engine.Engine{"fake": changed{mu: &sync.Mutex{}, told: &told, fails: c.fails}}, nil)
		w.Backends.Networks = links{failure: c.links}
		err := w.Runs.Do(t.Context(), &plan.Step{Kind: plan.MoveLinks, Moves: moves}, func(string) {})
		if len(told) == 4 {
			slices.Sort(told[2:])
			slices.Sort(told[:2])
		}
		if (err != nil) != c.wrong || !slices.Equal(told, c.told) {
			t.Errorf("%s: told of %v, %v", what, told, err)
		}
	}
}
