package lxc

import (
	"context"
	"strings"
	"testing"
	"time"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/host/process"
	"orrery/internal/site"
)

// TestDiesAtOnce: a node whose init ends at once is not reported as started.
func TestDiesAtOnce(t *testing.T) {
	g := newGround(t)
	n := g.Node("shortlived", 147)
	ref := engine.RefOf(n)
	c := g.container(ref)
	must(t, g.Create(t.Context(), n))
	t.Cleanup(func() { must(t, g.Destroy(context.Background(), ref)) })
	must(t, g.Start(t.Context(), ref))
	must(t, g.Runner(ref).Run(t.Context(),
		host.Command{Args: []string{"sh", "-c",
			"rm /sbin/init; printf '#!/bin/sh\necho no service today; exit 3\n' >/sbin/init; chmod 755 /sbin/init"}}))
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	must(t, g.Stop(ctx, ref))
	err := g.Start(t.Context(), ref)
	if err == nil {
		t.Fatal("it is said to have been started")
	}
	for _, part := range []string{"node shortlived", "its init ended", "no service today"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%q is not in %v", part, err)
		}
	}
	if c.monitor() != 0 {
		t.Error("its monitor is left")
	}
}

// TestPowersOff: from the moment when its init ends, a node that powers itself off is stopped. What its
// monitor starts to clean up is not a new init.
func TestPowersOff(t *testing.T) {
	g := newGround(t)
	g.otherKinds(t)
	n := g.Node("poweroff", 148)
	onto(t, n, site.Exclusive) // LXC's monitor runs a script when the node has ended
	ref := engine.RefOf(n)
	c := g.container(ref)
	must(t, g.Create(t.Context(), n))
	t.Cleanup(func() { must(t, g.Destroy(context.Background(), ref)) })
	must(t, g.Start(t.Context(), ref))
	monitor, init := c.monitorAndInit()
	_ = g.Runner(ref).Run(t.Context(), host.Command{Args: []string{"poweroff"}})
	children := map[int]bool{}
	for begun := time.Now(); c.monitor() == monitor && time.Since(begun) < time.Minute; {
		for _, pid := range process.Host.Children(monitor) {
			children[pid] = true
		}
		if now := c.init(); now != 0 && now != init {
			t.Fatalf("process %d counts as init, after process %d (%v)", now, init, process.Host.Stat(now))
		}
	}
	if c.monitor() != 0 {
		t.Error("the node does not end")
	}
	if len(children) < 2 {
		t.Errorf("LXC's monitor had no other children than init: %v", children)
	}
}
