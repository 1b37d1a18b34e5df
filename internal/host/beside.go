package host

import (
	"os"
	"path/filepath"

	"orrery/internal/problem"
)

// Beside finds a program that comes with Orrery: built beside the program that runs, or installed with it.
func Beside(name string) (string, error) {
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
	return "", problem.New(problem.Unable, "the program %s is not there", name).At(filepath.Dir(self)).
		Try("make bin/%s builds it; make install installs it", name)
}
