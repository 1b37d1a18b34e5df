package enginetest

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// remounter returns the engine as a Remounter, or skips the test.
func remounter(s *suite) engine.Remounter {
	s.Helper()
	r, ok := s.Engine.(engine.Remounter)
	if !s.Engine.Capabilities().Remount {
		s.Skip("the engine does not change the volumes of a running node")
	}
	if !ok {
		s.Fatal("the engine says that it can change the volumes of a running node, and is no Remounter")
	}
	return r
}

// showOnly makes some volumes, and no others, visible to a running node, and checks the listed
// volumes.
func showOnly(s *suite, n *spec.Node, mounts ...spec.Mount) {
	s.Helper()
	s.must(remountTo(s, n, mounts...))
	n.Mounts = mounts
	wantMounts(s, n, mounts...)
}

func remountTo(s *suite, n *spec.Node, mounts ...spec.Mount) error {
	changed := *n
	changed.Mounts = mounts
	return remounter(s).Remount(s.Context(), &changed)
}

func wantMounts(s *suite, n *spec.Node, mounts ...spec.Mount) {
	s.Helper()
	if got := s.listed(n).Mounts; !slices.Equal(got, mounts) {
		s.Errorf("listed volumes of node %s: %+v, want %+v", n.Name, got, mounts)
	}
}

func named(volume, path string) spec.Mount {
	m := volumeAt(path, false)
	m.Volume = "enginetest-" + volume
	return m
}

// remount: a running node gets one volume in place of another, then none, then the first again.
func remount(s *suite) {
	remounter(s)
	a, b := named("a", "/srv/data"), named("b", "/srv/data")
	n := s.Node("remount", 60)
	n.Mounts = []spec.Mount{a}
	s.create(n)
	s.start(n)
	s.put(n, host.File{Path: "/srv/data/rows", Content: []byte("of a"), Owner: "nobody:nogroup"})
	showOnly(s, n, a) // nothing changes
	s.want("on a", s.ask(n, "cat", "/srv/data/rows"), "of a")
	showOnly(s, n, b)
	if s.has(n, "/srv/data/rows") {
		s.Error("the node sees the volume that was taken from it")
	}
	s.put(n, fileOf("/srv/data/rows", "of b"))
	showOnly(s, n)
	if s.has(n, "/srv/data/rows") {
		s.Error("the node sees a volume although it has none")
	}
	s.put(n, fileOf("/srv/data/own", "of the node"))
	showOnly(s, n, a)
	s.want("on a again", s.ask(n, "cat", "/srv/data/rows"), "of a")
	s.want("its owner", s.ask(n, "stat", "-c", "%a %U:%G", "/srv/data/rows"), "644 nobody:nogroup")
	if s.has(n, "/srv/data/own") {
		s.Error("what the node wrote to its own directory is on the volume")
	}
	s.stop(n)
	s.start(n)
	s.want("on a after a restart", s.ask(n, "cat", "/srv/data/rows"), "of a")
	showOnly(s, n, b, named("c", "/srv/late/deep"))
	s.want("on b again", s.ask(n, "cat", "/srv/data/rows"), "of b")
	s.put(n, fileOf("/srv/late/deep/x", "of c"))
	showOnly(s, n)
	s.want("the node's own", s.ask(n, "cat", "/srv/data/own"), "of the node")
}

// remountCopy: a node in quarantine gets a copy in place of the volume itself.
func remountCopy(s *suite) {
	remounter(s)
	own := named("own", "/srv/data")
	own.Exclusive = true
	copied := own
	copied.Copy, copied.Release = "empty", 701
	n := s.Node("copied", 61)
	n.Mounts = []spec.Mount{copied}
	s.create(n)
	s.start(n)
	s.put(n, fileOf("/srv/data/rows", "trial"))
	showOnly(s, n, own)
	if s.has(n, "/srv/data/rows") {
		s.Error("what was written to a copy is on the volume")
	}
	s.put(n, fileOf("/srv/data/rows", "true"))
	showOnly(s, n, copied)
	s.want("on the copy", s.ask(n, "cat", "/srv/data/rows"), "trial")
}

// remountBusy: if a process uses a volume, that volume and all others stay.
func remountBusy(s *suite) {
	remounter(s)
	if !s.Kernel {
		s.Skip("no process of the node uses a file")
	}
	a, b := named("a", "/srv/a"), named("b", "/srv/b")
	n := s.Node("busy", 62)
	n.Mounts = []spec.Mount{a, b}
	s.create(n)
	s.start(n)
	s.put(n, fileOf("/srv/a/rows", "of a"))
	end := holdOpen(s, n, "/srv/b/held")
	err := remountTo(s, n, named("c", "/srv/a"))
	if problem.ExitCode(err) != int(problem.Failed) || !strings.Contains(err.Error(), "sleep") ||
		!strings.Contains(err.Error(), "/srv/b/held") {
		s.Errorf("the error does not name what uses the volume: %v", err)
	}
	wantMounts(s, n, a, b)
	s.want("on a", s.ask(n, "cat", "/srv/a/rows"), "of a")
	s.put(n, fileOf("/srv/b/more", "x"))
	end()
	showOnly(s, n, named("c", "/srv/a"))
	if s.has(n, "/srv/a/rows") || s.has(n, "/srv/b/more") {
		s.Error("the node sees volumes that it has no more")
	}
}

// remountStopped: volumes of a stopped node cannot be remounted.
func remountStopped(s *suite) {
	remounter(s)
	n := s.made("still", 63)
	wantNotRunning(s, "Remount", n, remountTo(s, n, named("a", "/srv/a")))
	wantMounts(s, n)
}

// holdOpen runs sleep in a node, which keeps a file open until the caller calls end. When end returns,
// the process is gone.
func holdOpen(s *suite, n *spec.Node, path string) (end func()) {
	s.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	out, in := io.Pipe()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		err := s.runner(n).Run(ctx, host.Command{Args: []string{"sh", "-c", "exec 9>" + path + "; echo $$; exec sleep 600"},
			Stdout: in})
		_ = in.CloseWithError(err)
	}()
	var pid int
	if _, err := fmt.Fscanln(out, &pid); err != nil {
		s.Fatalf("a process that holds %s: %v", path, err)
	}
	go func() { _, _ = io.Copy(io.Discard, out) }()
	while := func(script string) { // it is so
		for s.runner(n).Run(context.Background(), commandOf("sh", "-c", fmt.Sprintf(script, pid))) == nil {
			time.Sleep(10 * time.Millisecond)
		}
	}
	while("cd /proc/%d && ! grep -q sleep comm")
	end = func() {
		cancel()
		<-ended
		while("test -e /proc/%d")
	}
	s.Cleanup(end)
	return end
}
