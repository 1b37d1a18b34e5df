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

// stressLoopEnv is set in the environment of the program that KillStressLoop kills.
const stressLoopEnv = "ORRERY_TEST_RESTLESS"

// A Mover can change the volumes of a running node, and freeze it.
type Mover interface {
	engine.Engine
	engine.Remounter
	engine.Freezer
}

// StressLoop is the body of an engine's TestRestless. It does nothing unless KillStressLoop started the
// program. It gives the first node of a site each set of volumes in turn, and freezes and thaws it,
// for ever.
func StressLoop(t *testing.T, e Mover, key string, choices [][]spec.Mount) {
	if os.Getenv(stressLoopEnv) == "" {
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

// KillStressLoop runs TestRestless of this test program, and kills it after a random time of at most
// latest.
func KillStressLoop(t *testing.T, latest time.Duration) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := host.Program(ctx, os.Args[0], "-test.run=^TestRestless$", "-test.v")
	cmd.Env = append(os.Environ(), stressLoopEnv+"=1")
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

// WantRecorded checks that each of some volumes that is mounted in a node is recorded.
func (g Env) WantRecorded(t *testing.T, when string, n *spec.Node, mounts ...spec.Mount) {
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
