package cgroup

import (
	"os"
	"path/filepath"
	"strconv"
)

// Enter moves this process into the group in every hierarchy. Its later children start there. It
// creates the group if it does not exist.
func (g Group) Enter() error {
	if err := g.Create(); err != nil {
		return err
	}
	roots, v2 := g.at.hierarchiesByVersion()
	if v2 != "" {
		roots = append(roots, v2)
	}
	for _, root := range roots {
		if err := os.WriteFile(filepath.Join(root, g.name, "cgroup.procs"), []byte(strconv.Itoa(os.Getpid())),
			0); err != nil {
			return err
		}
	}
	return nil
}
