package lab

import (
	"path/filepath"

	"orrery/internal/control"
	"orrery/internal/host"
	"orrery/internal/lab/setting"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// lockFile is the file in the directory of bundles that the lab at work there has locked.
const lockFile = ".lock"

// alone refuses to measure beside the lab of another state directory: the two would measure one
// another, and their settings have the same names. The lock of this state directory does not keep
// that one out.
func alone(c *control.Session) error {
	if c.Machine != nil {
		return nil // the claims of this machine say nothing of that one
	}
	state := c.Dirs.KeptElsewhere((&site.Site{Name: setting.SiteName}).Key())
	if state == "" {
		return nil
	}
	lock := filepath.Join(state, bundlesName, lockFile)
	if host.Held(lock) {
		return problem.New(problem.Locked, "another lab measures on this host: %s", host.HeldBy(lock)).At(state).
			Try("wait for it, or end that process with Ctrl-C")
	}
	return problem.New(problem.Unable, "settings of a lab that was killed are still on this host").At(state).
		Try("ORRERY_STATE=%[1]s orrery lab ls names its bundle, and ORRERY_STATE=%[1]s orrery -C BUNDLE/site down removes them",
			state)
}
