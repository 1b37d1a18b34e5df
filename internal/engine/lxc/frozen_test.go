package lxc

import (
	"context"
	"os"
	"testing"
	"time"

	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/test/need"
)

// TestFrozenByItself: the node can be stopped and destroyed quickly, whatever its root has frozen
// inside.
//
// Promise (What nodes may do to the host): A node that freezes its processes does not keep `stop`,
// `restart` or `down` from ending; one whose init ends at once has not started. With
// engine/lxc.TestDiesAtOnce, host/cgroup.TestKillFrozenInside, host/cgroup.TestKillDeepInside.
func TestFrozenByItself(t *testing.T) {
	g := newGround(t)
	r := remountOf(t, g, g.Node("ice", 146))
	program, err := os.ReadFile(need.Attack(t))
	must(t, err)
	arm := func() {
		t.Helper()
		must(t, g.Start(t.Context(), r.c.ref))
		must(t, r.Runner(r.c.ref).Put(t.Context(), host.File{Path: "/usr/local/bin/attack", Content: program, Mode: 0o755}))
	}
	within := func(d time.Duration, do func() error) {
		t.Helper()
		done, began := make(chan error, 1), time.Now()
		go func() { done <- do() }()
		select {
		case err := <-done:
			must(t, err)
			t.Logf("it took %v", time.Since(began))
		case <-time.After(d):
			t.Errorf("it has not ended after %v", d)
			thawByHand(t, r.c)
			<-done
		}
	}
	stop := func(timeout time.Duration) func() error {
		return func() error {
			ctx, cancel := context.WithTimeout(context.Background(), timeout)
			defer cancel()
			return g.Stop(ctx, r.c.ref)
		}
	}

	t.Log("a command that was started from outside")
	arm()
	attached := make(chan error, 1)
	go func() {
		attached <- r.Runner(r.c.ref).
			Run(t.Context(), host.Command{Args: []string{"sh", "-c", "echo $$ >/run/attached; exec sleep 600"}})
	}()
	r.sh("until [ -s /run/attached ]; do sleep 0.05; done; attack freeze-process $(cat /run/attached)")
	within(40*time.Second, stop(time.Minute))
	if <-attached == nil {
		t.Error("the command went on")
	}

	t.Log("a process that is frozen again whenever it is thawed")
	arm()
	r.sh("setsid sleep 600 >/dev/null 2>&1 & setsid attack freeze-process $! again >/run/again 2>&1 & until grep frozen /run/again; do sleep 0.05; done")
	within(20*time.Second, stop(3*time.Second))

	t.Log("init itself")
	arm()
	r.sh("attack freeze-process 1")
	within(20*time.Second, stop(3*time.Second))
	arm()
	r.sh("attack freeze-process 1")
	within(15*time.Second, func() error { return g.Destroy(context.Background(), r.c.ref) })

	if nodes, err := g.List(t.Context(), testSite); err != nil || len(nodes) > 0 && nodes[0].State == observe.Running {
		t.Errorf("after that there are %v (%v)", nodes, err)
	}
}

// thawByHand thaws a node of a failed test, so that the test can end.
func thawByHand(t *testing.T, c container) {
	t.Helper()
	for range 100 {
		must(t, c.group().ThawAll(context.Background()))
		time.Sleep(10 * time.Millisecond)
	}
}
