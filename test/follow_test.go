package test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// follows follows the journal of a node. The returned function checks that the journal contains
// some texts, and stops following.
func (s *site) follows(node string) (followed func(want ...string)) {
	s.Helper()
	cmd, _, _ := s.command("logs", node, "-f")
	file, err := os.Create(filepath.Join(s.TempDir(), "followed"))
	must(s.T, err)
	defer file.Close()
	cmd.Stdout, cmd.Stderr = file, file
	wait, err := begin(cmd)
	must(s.T, err)
	told := func(want ...string) {
		s.Helper()
		s.eventually(func() error {
			text, _ := os.ReadFile(file.Name())
			for _, part := range want {
				if !strings.Contains(string(text), part) {
					return errors.New("logs -f does not tell " + part + ":\n" + string(text))
				}
			}
			return nil
		})
	}
	told("==> journal of node " + node)
	return func(want ...string) {
		s.Helper()
		told(want...)
		_ = cmd.Process.Signal(syscall.SIGINT)
		if err := wait(); err != nil {
			s.Errorf("logs -f ended with %v", err)
		}
	}
}
