package control

import (
	"os"

	"orrery/internal/apply/local"
	"orrery/internal/control/guard"
	"orrery/internal/engine/all"
	"orrery/internal/host"
	"orrery/internal/host/later"
	"orrery/internal/image"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// A Machine is what a Session works on.
type Machine interface {
	// Allowed returns an Unable problem if the caller may not change what is on the machine, nor see all of it.
	Allowed() error
	// Host gives the machine as the host of a site that has this name there.
	Host(name string, s *site.Site) *local.Host
	// Guard sees to it that nodes go on that stand still when this process is killed, until it is let go.
	Guard(nodes ...*spec.Node) (letGo func(), err error)
	// Later lets a command line of this program run later, whatever becomes of this process.
	Later(l later.Call) error
	// Waiting gives the command lines that are to run.
	Waiting() ([]later.Waiting, error)
	// Cancel takes back one that is to run, if it is there.
	Cancel(name string) error
}

// This is the machine on which the program runs, with Orrery's state in these directories.
type This struct{ Dirs host.Dirs }

// Allowed wants root.
func (This) Allowed() error { return NeedRoot() }

// Host gives this machine with all its engines.
func (m This) Host(name string, s *site.Site) *local.Host {
	store := image.Open(m.Dirs.State)
	return local.New(name, m.Dirs, s, all.Engines(m.Dirs, store), store)
}

// Guard starts a process for it.
func (m This) Guard(nodes ...*spec.Node) (letGo func(), err error) { return guard.Start(m.Dirs, nodes) }

// Later lets systemd run it, or a process that waits. What is put on record for that must not be covered by what is mounted over the run
// directory when a site comes up, where /run is on a disk: nobody would know then that somebody waits.
func (m This) Later(l later.Call) error {
	letGo, err := host.HoldInMemory(m.Dirs.Run)
	if err != nil {
		return err
	}
	defer letGo()
	return later.Run(l, m.Dirs)
}

// Waiting gives what systemd or a process is to run.
func (m This) Waiting() ([]later.Waiting, error) { return later.List(m.Dirs) }

// Cancel ends the timer or process.
func (m This) Cancel(name string) error { return later.Cancel(name, m.Dirs) }

// NeedRoot says that an operation is for root.
func NeedRoot() error {
	if os.Geteuid() == 0 {
		return nil
	}
	return problem.New(problem.Unable, "this needs root").Try("sudo orrery …")
}

// machine gives what the session works on.
func (c *Session) machine() Machine {
	if c.Machine != nil {
		return c.Machine
	}
	return This{c.Dirs}
}

// Allowed returns an Unable problem if the caller may not change what is on the machine, nor see all of it.
func (c *Session) Allowed() error { return c.machine().Allowed() }

// Guard sees to it that nodes go on that stand still when this process is killed, until it is let go.
func (c *Session) Guard(nodes ...*spec.Node) (letGo func(), err error) {
	return c.machine().Guard(nodes...)
}

// LayerLog is the file with what was printed when a layer was built.
func (c *Session) LayerLog(digest string) string { return image.Open(c.Dirs.State).LogOf(digest) }
