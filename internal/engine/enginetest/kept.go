package enginetest

import (
	"strings"
	"time"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/site/spec"
)

// wantIdentity asks the node who it is.
func wantIdentity(s *suite, n *spec.Node) {
	s.Helper()
	s.want("host name", s.ask(n, "cat", "/proc/sys/kernel/hostname"), n.Name)
	s.want("/etc/hostname", s.ask(n, "cat", "/etc/hostname"), n.Name)
	s.want("machine-id", s.ask(n, "cat", "/etc/machine-id"), n.MachineID)
	for _, nic := range n.NICs {
		s.want("hardware address of "+nic.Name, s.ask(n, "cat", "/sys/class/net/"+nic.Name+"/address"), nic.MAC)
		if got := s.ask(n, "ip", "-4", "-o", "addr", "show", "dev", nic.Name); !strings.Contains(got,
			" "+nic.Address.String()+" ") {
			s.Errorf("%s has not the address %s: %s", nic.Name, nic.Address, got)
		}
		wantRAIgnored(s, n, nic)
		if nic.Gateway != "" {
			if got := s.ask(n, "ip", "-4", "route", "show", "default"); !strings.Contains(got,
				"via "+nic.Gateway+" dev "+nic.Name) {
				s.Errorf("the default route is not by %s: %s", nic.Gateway, got)
			}
		}
	}
}

// wantRAIgnored asks the node whether it would believe a router advertisement on a network of Orrery's own.
func wantRAIgnored(s *suite, n *spec.Node, nic spec.NIC) {
	s.Helper()
	if !s.Kernel || !n.LinkKind(nic).HasHostEnds() {
		return
	}
	// A kernel without IPv6 ignores them anyway.
	script := "cat /proc/sys/net/ipv6/conf/" + nic.Name + "/accept_ra 2>/dev/null || echo 0"
	s.want("accept_ra of "+nic.Name, s.ask(n, "sh", "-c", script), "0")
}

func identity(s *suite, n *spec.Node) { wantIdentity(s, n) }

func volumeAt(path string, shared bool) spec.Mount {
	return spec.Mount{Volume: "enginetest", Path: path, Shared: shared, Owner: "root:root", Mode: 0o755}
}

// data: a node keeps what it has written until it is destroyed. Its volume is kept longer, and
// other nodes do not see it. A node that is made again has the same identity.
func data(s *suite) {
	n, other := s.Node("data", 22), s.Node("dataother", 24)
	n.Mounts = []spec.Mount{volumeAt("/srv/data", false)}
	other.Mounts = n.Mounts
	s.create(n)
	s.create(other)
	s.start(n)
	s.start(other)
	s.put(n, fileOf("/var/lib/enginetest", "kept"))
	s.put(n, fileOf("/srv/data/rows", "42"))
	if s.has(other, "/srv/data/rows") {
		s.Error("another node sees what is on a volume that is not shared")
	}
	s.destroy(other)
	s.stop(n)
	s.start(n)
	s.want("after a restart", s.ask(n, "cat", "/var/lib/enginetest"), "kept")
	s.destroy(n)
	s.must(s.Engine.Create(s.Context(), n))
	s.start(n)
	wantIdentity(s, n)
	if s.has(n, "/var/lib/enginetest") {
		s.Error("what a destroyed node wrote is in the new one")
	}
	s.want("on the volume", s.ask(n, "cat", "/srv/data/rows"), "42")
}

func sharedVolume(s *suite) {
	a, b := s.Node("share0", 25), s.Node("share1", 26)
	a.Mounts = []spec.Mount{volumeAt("/srv/a", true)}
	b.Mounts = []spec.Mount{volumeAt("/srv/b", true)}
	a.Mounts[0].Volume, b.Mounts[0].Volume = "enginetest-shared", "enginetest-shared"
	s.create(a)
	s.create(b)
	s.start(a)
	s.start(b)
	s.put(a, host.File{Path: "/srv/a/x", Content: []byte("both")})
	s.want("on the shared volume", s.ask(b, "cat", "/srv/b/x"), "both")
}

func mark(s *suite) {
	n := s.made("mark", 27)
	m := engine.Progress{
		Configured: true, Proven: "p1", ProvenAt: time.Unix(1e9, 0).UTC(), Active: true,
		Config: spec.Config{Parts: spec.PartDigests{"role: file /x": "d1"}, Services: []string{"x.service"}, Health: "h1"},
	}
	s.must(s.Engine.SetProgress(s.Context(), engine.RefOf(n), m))
	wantMark(s, n, m)
	s.start(n)
	s.stop(n)
	wantMark(s, n, m)
	changed := *n
	changed.Autostart = !n.Autostart
	changed.Config = spec.Config{Parts: spec.PartDigests{"role: file /x": "d2"}}
	s.must(s.Engine.Change(s.Context(), &changed))
	wantMark(s, n, m) // the new configuration has not been applied yet
	if s.listed(n).Autostart == n.Autostart {
		s.Error("autostart did not change")
	}
	m.Configured, m.Proven, m.Active = false, "", false
	s.must(s.Engine.SetProgress(s.Context(), engine.RefOf(n), m))
	wantMark(s, n, m)
}

func wantMark(s *suite, n *spec.Node, m engine.Progress) {
	s.Helper()
	o := s.listed(n)
	if o.Configured != m.Configured || o.Active != m.Active || o.Proven != m.Proven || !o.ProvenAt.Equal(m.ProvenAt) ||
		spec.Digest(o.Config) != spec.Digest(m.Config) {
		s.Errorf("marked %+v, listed configured %t, active %t, proven %q, %+v", m, o.Configured, o.Active, o.Proven, o.Config)
	}
}
