package enginetest

import (
	"os"
	"path/filepath"
	"syscall"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
)

// layered: what a node writes is in a directory of the host, with the owners that the node sees.
func layered(s *suite, n *spec.Node) {
	l, ok := s.Engine.(engine.Layered)
	if !ok {
		s.Skip("the engine is not Layered")
	}
	s.put(n, host.File{Path: "/var/lib/enginetest", Content: []byte("mine"), Owner: "nobody:nogroup"})
	s.ask(n, "rm", "/etc/issue.net")
	upper := l.Private(engine.RefOf(n))
	text, err := os.ReadFile(filepath.Join(upper, "var/lib/enginetest"))
	s.must(err)
	s.want("what the node wrote", string(text), "mine")
	if !s.Kernel {
		return // an engine in memory has no owners
	}
	for path, want := range map[string]uint32{"var/lib/enginetest": 65534, "var/lib": 0, "etc/hostname": 0} {
		info, err := os.Lstat(filepath.Join(upper, path))
		s.must(err)
		if got := info.Sys().(*syscall.Stat_t).Uid; got != want {
			s.Errorf("owner of %s: %d, want %d", path, got, want)
		}
	}
	info, err := os.Lstat(filepath.Join(upper, "etc/issue.net"))
	s.must(err)
	if info.Mode()&os.ModeCharDevice == 0 || info.Sys().(*syscall.Stat_t).Rdev != 0 {
		s.Errorf("a deleted file is %v", info.Mode())
	}
}

// view: the host reads and writes the files of a running node, with the owners that the host sees,
// without running anything in it.
func view(s *suite, n *spec.Node) {
	v, ok := s.Engine.(engine.RootOpener)
	if !ok {
		s.Skip("the engine is no RootOpener")
	}
	s.put(n, host.File{Path: "/var/lib/enginetest", Content: []byte("mine"), Owner: "nobody:nogroup"})
	first := 0
	if mapper, ok := s.Engine.(engine.Idmapper); ok {
		var err error
		first, err = mapper.Idmap(engine.RefOf(n))
		s.must(err)
	}
	root, err := v.OpenRoot(engine.RefOf(n))
	s.must(err)
	text, err := root.ReadFile("/var/lib/enginetest", 100)
	s.must(err)
	s.want("what the node wrote", string(text), "mine")
	st, err := root.Lstat("/var/lib/enginetest")
	s.must(err)
	if int(st.Uid) != first+65534 {
		s.Errorf("it belongs to %d, and the node's root is %d", st.Uid, first)
	}
	seen(s, n, first)
	s.ask(n, "rm", "/etc/issue.net")
	s.must(root.Put(tree.File{Path: "/etc/issue.net", Content: []byte("again"), Uid: first, Gid: first + 4, Mode: 0o640},
		first, first))
	s.must(root.Close())
	s.want("what the host wrote", s.ask(n, "cat", "/etc/issue.net"), "again")
	s.want("its dress", s.ask(n, "stat", "-c", "%U:%G %a", "/etc/issue.net"), "root:adm 640")
}

// seen: a Runner that is a host.Viewer lets the host open what the node's root may read. It
// recognizes the node's ids and no others.
func seen(s *suite, n *spec.Node, first int) {
	in, ok := s.Engine.Runner(engine.RefOf(n)).(host.Viewer)
	if !ok {
		if s.Engine.Capabilities().Containers { // the host does not see the mounts of a guest
			s.Error("the engine is a RootOpener, and its Runner is no Viewer")
		}
		return
	}
	root, owned, err := in.View()
	s.must(err)
	defer root.Close()
	if !owned(uint32(first)) || !owned(uint32(first+65534)) || first > 0 &&
		(owned(0) || owned(uint32(first-1)) || owned(uint32(first+65536))) {
		s.Errorf("the node's root is %d, and its other ids are others", first)
	}
	f, st, err := root.OpenOwned("/var/lib/enginetest", owned)
	s.must(err)
	f.Close() //nolint:errcheck // it was not read
	if int(st.Uid) != first+65534 {
		s.Errorf("it belongs to %d, and the node's root is %d", st.Uid, first)
	}
	if f, _, err := root.OpenOwned("/proc/uptime", owned); err == nil {
		s.Errorf("%s was opened", f.Name())
	}
}
