package enginetest

import (
	"os"
	"slices"
	"strings"

	"orrery/internal/engine"
	"orrery/internal/host/cgroup"
	"orrery/internal/host/process"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

func someLimits() site.Limits {
	return site.Limits{Cpus: 0.5, Pin: "0", Memory: 256 << 20, Pids: 300}
}

// wantLimits compares what List shows and what the kernel enforces with what was asked for.
func wantLimits(s *suite, n *spec.Node, want site.Limits) {
	s.Helper()
	if got := s.listed(n).Limits; spec.Digest(got) != spec.Digest(want) {
		s.Errorf("listed limits: got %+v, want %+v", got, want)
	}
	if s.InForce == nil || s.listed(n).State != observe.Running {
		return
	}
	got := s.InForce(s.T, engine.RefOf(n))
	if want.Pin == "" {
		got.Pin = "" // the kernel may list all processors
	}
	if want.Swap == nil {
		got.Swap = nil
	}
	if spec.Digest(got) != spec.Digest(want) {
		s.Errorf("limits in force: got %+v, want %+v", got, want)
	}
}

func limits(s *suite) {
	if !s.Engine.Capabilities().LiveLimits {
		s.Skip("the engine does not change limits of a running node")
	}
	n := s.running("limits", 30)
	wantLimits(s, n, site.Limits{})
	n.Limits = someLimits()
	s.must(s.Engine.Change(s.Context(), n))
	s.wantState(n, observe.Running)
	wantLimits(s, n, n.Limits)
	n.Limits.Cpus, n.Limits.Memory = 1.25, 384<<20
	s.must(s.Engine.Change(s.Context(), n))
	wantLimits(s, n, n.Limits)
	s.stop(n)
	s.start(n)
	wantLimits(s, n, n.Limits)
	n.Limits = site.Limits{}
	s.must(s.Engine.Change(s.Context(), n))
	wantLimits(s, n, n.Limits)
	s.ask(n, "true")
}

// limitsOfRunning: an engine without LiveLimits refuses to change limits of a running node, and
// leaves the node unchanged.
func limitsOfRunning(s *suite, n *spec.Node) {
	if s.Engine.Capabilities().LiveLimits {
		s.Skip("the engine changes limits of a running node")
	}
	changed := *n
	changed.Limits = someLimits()
	if err := s.Engine.Change(s.Context(), &changed); problem.ExitCode(err) != int(problem.Surprise) {
		s.Errorf("limits of a running node were changed: %v", err)
	}
	s.wantState(n, observe.Running)
	wantLimits(s, n, site.Limits{})
}

func limitsOfStopped(s *suite) {
	n := s.Node("limited", 31)
	n.Limits = someLimits()
	s.create(n)
	wantLimits(s, n, n.Limits)
	s.start(n)
	wantLimits(s, n, n.Limits)
	s.stop(n)
	n.Limits.Memory = 512 << 20
	s.must(s.Engine.Change(s.Context(), n))
	wantLimits(s, n, n.Limits)
	s.start(n)
	wantLimits(s, n, n.Limits)
}

func reshape(s *suite) {
	n := s.running("reshape", 32)
	s.put(n, fileOf("/var/lib/enginetest", "kept"))
	s.stop(n)
	n.NICs[0].MAC = site.MAC(n.Site, "somebody else", n.NICs[0].Network)
	n.Mounts = []spec.Mount{volumeAt("/srv/late", false)}
	s.must(s.Engine.Change(s.Context(), n))
	s.start(n)
	wantIdentity(s, n)
	s.put(n, fileOf("/srv/late/x", "y"))
	s.want("private data", s.ask(n, "cat", "/var/lib/enginetest"), "kept")
	s.stop(n)
	n.Mounts = nil
	s.must(s.Engine.Change(s.Context(), n))
	s.start(n)
	if s.has(n, "/srv/late/x") {
		s.Error("the node sees a volume that it has no more")
	}
}

func reshapeRunning(s *suite, n *spec.Node) {
	before := n.NICs[0].MAC
	changed := *n
	changed.NICs = slices.Clone(n.NICs)
	changed.NICs[0].MAC = site.MAC(n.Site, "somebody else", n.NICs[0].Network)
	if err := s.Engine.Change(s.Context(), &changed); problem.ExitCode(err) != int(problem.Surprise) {
		s.Errorf("changing an interface of a running node returns %v, not a Surprise", err)
	}
	s.want("listed hardware address", s.listed(n).NICs[0].MAC, before)
	s.want("hardware address", s.ask(n, "cat", "/sys/class/net/"+n.NICs[0].Name+"/address"), before)
}

// unprivileged: root of a node has no privileges on the host, unless the spec asks for them.
func unprivileged(s *suite) {
	if !s.Kernel || !s.Engine.Capabilities().Containers {
		s.Skip("user ids of the host can only be seen where nodes share its kernel")
	}
	n := s.running("idmapped", 34)
	// This must be read on the host: a node sees only its ids in the user namespace around its own.
	idMap := func() (inside, outside string) {
		processes := cgroup.Named(s.Engine.(engine.CgroupProvider).Cgroup(engine.RefOf(n))).Processes()
		if len(processes) == 0 {
			s.Fatal("the node has no processes")
		}
		text, err := os.ReadFile(process.Host.File(processes[0], "uid_map"))
		s.must(err)
		fields := strings.Fields(string(text))
		if len(fields) < 3 {
			s.Fatalf("uid_map: %q", fields)
		}
		return fields[0], fields[1]
	}
	if inside, outside := idMap(); inside != "0" || outside == "0" {
		s.Errorf("root of an unprivileged node is user %s on the host", outside)
	}
	s.put(n, fileOf("/var/lib/enginetest", "kept"))
	s.stop(n)
	n.Privileged = true
	s.must(s.Engine.Change(s.Context(), n))
	s.start(n)
	if inside, outside := idMap(); inside != "0" || outside != "0" {
		s.Errorf("root of a privileged node is user %s on the host", outside)
	}
	s.want("owner of what it wrote before", s.ask(n, "stat", "-c", "%a %U:%G", "/var/lib/enginetest"), "644 root:root")
	s.want("owner of what is in the base layer", s.ask(n, "stat", "-c", "%U:%G", "/etc/passwd"), "root:root")
}
