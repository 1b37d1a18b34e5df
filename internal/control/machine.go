package control

import (
	"orrery/internal/control/here"
)

// Local returns the machine that the session works on.
func (c *Session) Local() here.Machine {
	if c.Machine != nil {
		return c.Machine
	}
	return here.LocalMachine{Dirs: c.Dirs, Version: c.Version}
}

// Allowed returns an Unable problem if the caller may not change the machine or read all of its
// state.
func (c *Session) Allowed() error { return c.Local().Allowed() }
