package enginetest

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"testing"
	"time"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/site/spec"
	"orrery/internal/volume"
)

// restless is set for the program that KillRestless kills.
const restless = "ORRERY_TEST_RESTLESS"

// A Mover changes the volumes of a node that runs, and lets it stand still.
type Mover interface {
	engine.Engine
	engine.Remounter
	engine.Freezer
}

// Restless is what TestRestless of an engine does, and that program alone: it gives the node of a
// site some volumes after the others, and freezes it, again and again.
func Restless(t *testing.T, e Mover, key string, choices [][]spec.Mount) {
	if os.Getenv(restless) == "" {
		return
	}
	nodes, err := e.List(t.Context(), key)
	must(t, err)
	n := nodes[0].Node
	fmt.Println("ready")
	for i := 0; ; i++ {
		n.Mounts = choices[i%len(choices)]
		must(t, e.Remount(t.Context(), &n))
		must(t, e.Freeze(t.Context(), engine.RefOf(&n)))
		must(t, e.Thaw(t.Context(), engine.RefOf(&n)))
	}
}

// KillRestless starts TestRestless of the program that runs this test, and kills it at some moment.
func KillRestless(t *testing.T, latest time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := host.Program(ctx, os.Args[0], "-test.run=^TestRestless$", "-test.v")
	cmd.Env = append(os.Environ(), restless+"=1")
	out, err := cmd.StdoutPipe()
	must(t, err)
	must(t, cmd.Start())
	for lines := bufio.NewScanner(out); lines.Scan() && lines.Text() != "ready"; {
		continue
	}
	time.Sleep(rand.N(latest))
	must(t, cmd.Process.Kill())
	if err := cmd.Wait(); cmd.ProcessState.Exited() {
		t.Fatalf("it ended by itself: %v", err)
	}
}

// WantNoted wants that the record of a node says no less than is so: of some volumes, those that
// are mounted in it are on record.
func (g Ground) WantNoted(t *testing.T, when string, n *spec.Node, mounts ...spec.Mount) {
	t.Helper()
	r, err := g.of.Record(engine.RefOf(n))
	must(t, err)
	for _, m := range mounts {
		writers, err := Writers(volume.Path(g.of.Dirs, n.Site, n.Name, m))
		must(t, err)
		if slices.Contains(writers, fmt.Sprintf("%s/%d", n.Site, n.ID)) && !slices.Contains(r.Mounts, m) {
			t.Errorf("%s: volume %s is mounted and not on record: %+v", when, m.Volume, r.Mounts)
		}
	}
}
