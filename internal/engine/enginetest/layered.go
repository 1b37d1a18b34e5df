package enginetest

import (
	"os"
	"path/filepath"
	"syscall"

	"orrery/internal/engine"
	"orrery/internal/host"
)

// layered: what a node writes is in a directory of the host, with the owners that the node sees.
func layered(s *suite) {
	l, ok := s.Engine.(engine.Layered)
	if !ok {
		s.Skip("the engine is not Layered")
	}
	n := s.running("layered", 84)
	s.put(n, host.File{Path: "/var/lib/enginetest", Content: []byte("mine"), Owner: "nobody:nogroup"})
	s.ask(n, "rm", "/etc/issue.net")
	upper := l.Private(engine.RefOf(n))
	text, err := os.ReadFile(filepath.Join(upper, "var/lib/enginetest"))
	s.must(err)
	s.want("what the node wrote", string(text), "mine")
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
