package pkgmirror

import (
	"orrery/internal/problem"
	"orrery/internal/text/pattern"
)

// Names and versions of packages were written by the layers' packages, and become paths and
// arguments of apt and pip. The patterns are compiled when a mirror first needs them. That takes
// half a millisecond, for which other verbs need not wait.
var (
	debianName       = pattern.New(`^[a-z0-9][a-z0-9+.-]{1,127}$`)
	debianVersion    = pattern.New(`^([0-9]+:)?[A-Za-z0-9][A-Za-z0-9.+~-]{0,127}$`)
	pythonName       = pattern.New(`^[a-z0-9]([a-z0-9-]{0,126}[a-z0-9])?$`)
	pythonVersion    = pattern.New(`^[A-Za-z0-9][A-Za-z0-9.!+_-]{0,127}$`)
	architectureName = pattern.New(`^[a-z0-9][a-z0-9-]{0,31}$`)
)

func validDebian(p Package) bool {
	return debianName().MatchString(p.Name) && debianVersion().MatchString(p.Version)
}
func validPython(p Package) bool {
	return pythonName().MatchString(p.Name) && pythonVersion().MatchString(p.Version)
}

// validateNeeds returns an error if a package has an invalid name or version.
func validateNeeds(all []need) error {
	wrong := func(n need, p Package) error {
		return problem.New(problem.Failed, "layer %s lists a package %q, which is not a valid name and version",
			n.layer.Title, p).
			Try("find out which package of the layer wrote that")
	}
	for _, n := range all {
		for _, p := range n.debian {
			if !validDebian(p) {
				return wrong(n, p)
			}
		}
		for _, p := range n.python {
			if !validPython(p) {
				return wrong(n, p)
			}
		}
	}
	return nil
}
