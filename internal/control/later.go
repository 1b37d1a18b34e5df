package control

import (
	"orrery/internal/host"
	"orrery/internal/host/later"
)

// Later lets a command line of this program run later. What is put on record for that must not be covered by what is mounted over the run directory
// when a site comes up, where /run is on a disk: nobody would know then that somebody waits.
func (c *Session) Later(l later.Call) error {
	letGo, err := host.HoldInMemory(c.Dirs.Run)
	if err != nil {
		return err
	}
	defer letGo()
	return later.Run(l, c.Dirs)
}
