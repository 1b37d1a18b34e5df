package control

import (
	"orrery/internal/control/here"
)

// Local returns the machine that is worked on.
func (c *Session) Local() here.Machine {
	if c.Machine != nil {
		return c.Machine
	}
	return here.This{Dirs: c.Dirs, Version: c.Version}
}

// Allowed returns an Unable problem if the caller may not change what is on the machine, nor see all of it.
func (c *Session) Allowed() error { return c.Local().Allowed() }
