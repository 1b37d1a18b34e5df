package control

import (
	"orrery/internal/control/here"
	"orrery/internal/image"
	"orrery/internal/site/spec"
)

// machine gives what the session works on.
func (c *Session) machine() here.Machine {
	if c.Machine != nil {
		return c.Machine
	}
	return here.This{Dirs: c.Dirs, Version: c.Version}
}

// Allowed returns an Unable problem if the caller may not change what is on the machine, nor see all of it.
func (c *Session) Allowed() error { return c.machine().Allowed() }

// Guard sees to it that nodes go on that stand still when this process is killed, until it is let go.
func (c *Session) Guard(nodes ...*spec.Node) (letGo func(), err error) {
	return c.machine().Guard(nodes...)
}

// Store gives the layers of this machine.
func Store(c *Session) *image.Store { return image.Open(c.Dirs.State) }
