package lab

import (
	"path/filepath"

	"orrery/internal/control"
	"orrery/internal/host"
	"orrery/internal/lab/setting"
	"orrery/internal/problem"
	"orrery/internal/site"
)

// lockFile is locked, in the directory of bundles, by the lab that is at work there.
const lockFile = ".lock"

// checkExclusive returns an error if a lab of another state directory is at work. The two would disturb each
// other's measurements, and their settings have the same names. The lock in this state directory
// does not exclude that lab.
func checkExclusive(c *control.Session) error {
	if c.Machine != nil {
		return nil // the claims of this machine do not concern a machine in tests
	}
	state := c.Dirs.OtherStateDir((&site.Site{Name: setting.SiteName}).Key())
	if state == "" {
		return nil
	}
	lock := filepath.Join(state, bundlesName, lockFile)
	if host.IsLocked(lock) {
		return problem.New(problem.Locked, "another lab is measuring on this host: %s", host.DescribeHolder(lock)).At(state).
			Try("wait for it, or stop that process with Ctrl-C")
	}
	return problem.New(problem.Unable, "settings of a lab that was killed are still on this host").At(state).
		Try("ORRERY_STATE=%[1]s orrery lab ls names its bundle, and ORRERY_STATE=%[1]s orrery -C BUNDLE/site down removes them",
			state)
}
