package lxc

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/enginetest"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/site/spec"
	"orrery/test/need"
)

const restless = "ORRERY_TEST_RESTLESS"

// TestRestless is the program that TestKilledWhileChanging kills: it changes the volumes of a node, and freezes it, again and again.
func TestRestless(t *testing.T) {
	if os.Getenv(restless) == "" {
		return
	}
	e := New(host.Dirs{State: filepath.Join(need.State(), "engine"), Run: "/run/orrery-test-engine"}, image.Open(need.State()))
	nodes, err := e.List(t.Context(), testSite)
	must(t, err)
	n := nodes[0].Node
	ref := engine.RefOf(&n)
	fmt.Println("ready")
	for i := 0; ; i++ {
		n.Mounts = choices()[i%len(choices())]
		must(t, e.Remount(t.Context(), &n))
		must(t, e.Freeze(t.Context(), ref))
		must(t, e.Thaw(t.Context(), ref))
	}
}

// choices are the volumes that the node has in turn.
func choices() [][]spec.Mount {
	a, b, c := at("a", "/srv/data"), at("b", "/srv/data"), at("c", "/srv/data/in")
	return [][]spec.Mount{{a}, {b}, {b, c}, {a, c}, nil}
}

// Whenever a change of volumes is killed, the record says no less than is so, and the next change comes to its end.
func TestKilledWhileChanging(t *testing.T) {
	g := newGround(t)
	a, b, c := at("a", "/srv/data"), at("b", "/srv/data"), at("c", "/srv/data/in")
	r := remountOf(t, g, g.node("killed", 145), a, c)
	r.to(b)
	r.to(a)
	node := fmt.Sprintf("%s/%d", r.n.Site, r.n.ID)
	for i := range 40 {
		killSoon(t)
		rec, err := r.c.Read()
		must(t, err)
		for _, m := range []spec.Mount{a, b, c} {
			writers, err := enginetest.Writers(r.dir(m))
			must(t, err)
			if slices.Contains(writers, node) && !slices.Contains(rec.Mounts, m) {
				t.Errorf("round %d: volume %s is mounted and not on record: %+v", i, m.Volume, rec.Mounts)
			}
		}
		must(t, g.Sweep(t.Context(), testSite))
		if r.c.group().Frozen() {
			t.Errorf("round %d: the node stays frozen", i)
		}
		r.to(choices()[rand.IntN(len(choices()))]...)
	}
}

// killSoon kills a restless program after a while.
func killSoon(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, os.Args[0], "-test.run=^TestRestless$", "-test.v")
	cmd.Env = append(os.Environ(), restless+"=1")
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "ready"; {
		continue
	}
	time.Sleep(time.Duration(rand.IntN(40_000)) * time.Microsecond)
	must(t, cmd.Process.Kill())
	if err := cmd.Wait(); cmd.ProcessState.Exited() {
		t.Fatalf("it ended by itself: %v", err)
	}
}
