package lxc

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"orrery/internal/engine/enginetest"
	"orrery/internal/site/spec"
)

// TestRestless is the program that TestKilledWhileChanging kills.
func TestRestless(t *testing.T) { enginetest.StressLoop(t, newEngine(), testSite, choices()) }

// choices returns the sets of volumes that the node gets in turn.
func choices() [][]spec.Mount {
	a, b, c := at("a", "/srv/data"), at("b", "/srv/data"), at("c", "/srv/data/in")
	return [][]spec.Mount{{a}, {b}, {b, c}, {a, c}, nil}
}

// TestKilledWhileChanging: at whatever moment a change of volumes is killed, the record lists all
// volumes that the node may see, and the next change succeeds.
func TestKilledWhileChanging(t *testing.T) {
	g := newGround(t)
	a, b, c := at("a", "/srv/data"), at("b", "/srv/data"), at("c", "/srv/data/in")
	r := remountOf(t, g, g.Node("killed", 145), a, c)
	r.to(b)
	r.to(a)
	for i := range 40 {
		enginetest.KillStressLoop(t, 40*time.Millisecond)
		g.WantRecorded(t, fmt.Sprint("round ", i), r.n, a, b, c)
		must(t, g.Sweep(t.Context(), testSite))
		if r.c.group().Frozen() {
			t.Errorf("round %d: the node stays frozen", i)
		}
		r.to(choices()[rand.IntN(len(choices()))]...)
	}
}
