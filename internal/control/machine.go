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
	return here.This{Dirs: c.Dirs}
}

// NeedRoot says that an operation is for root.
func NeedRoot() error { return here.This{}.Allowed() }

// Allowed returns an Unable problem if the caller may not change what is on the machine, nor see all of it.
func (c *Session) Allowed() error { return c.machine().Allowed() }

// Guard sees to it that nodes go on that stand still when this process is killed, until it is let go.
func (c *Session) Guard(nodes ...*spec.Node) (letGo func(), err error) {
	return c.machine().Guard(nodes...)
}

// Store gives the layers of this machine.
func (c *Session) Store() *image.Store { return image.Open(c.Dirs.State) }

// LayerLog is the file with what was printed when a layer was built.
func (c *Session) LayerLog(digest string) string { return c.Store().LogOf(digest) }
