package host

import (
	"os"
	"path/filepath"

	"orrery/internal/problem"
)

// FindTool returns the path of a program that comes with Orrery. It looks beside the running program
// and in ../lib/orrery.
func FindTool(name string) (string, error) {
	self, err := os.Executable()
	if err != nil {
		return "", err
	}
	for _, dir := range []string{".", "../lib/orrery"} {
		path := filepath.Join(filepath.Dir(self), dir, name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	return "", problem.New(problem.Unable, "program %s is missing", name).At(filepath.Dir(self)).
		Try("make bin/%s builds it; make install installs it", name)
}
