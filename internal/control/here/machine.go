// Package here opens this machine as a host of a site, and names what only this machine offers to
// an operation. Nobody else in control knows how steps are done on it.
package here

import (
	"context"
	"os"

	"orrery/internal/apply"
	"orrery/internal/apply/local"
	"orrery/internal/apply/remote"
	"orrery/internal/control/guard"
	"orrery/internal/engine/all"
	"orrery/internal/host"
	"orrery/internal/host/doctor"
	"orrery/internal/host/path"
	"orrery/internal/host/schedule"
	"orrery/internal/image"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// A Machine is what operations work on.
type Machine interface {
	// Allowed returns an Unable problem if the caller may not change what is on the machine, nor see all of it.
	Allowed() error
	// Host returns the machine as a site with this key has it, which calls it by this name. What
	// secrets steps refer to, it asks for.
	Host(name, key string, secrets apply.Secrets) apply.Host
	// Reach returns the connection to another host of a site.
	Reach(ctx context.Context, h site.Host) (*remote.Link, error)
	// Inspect looks what the machine has that nodes need.
	Inspect() doctor.Facts
	// Try returns, for each way to another host, the size of the largest packet that came back from there, or 0
	// if none did.
	Try(ctx context.Context, ways []path.Way) []int
	// Outfit installs what nodes of some engines need and the machine does not have. It returns the
	// packages, and says what it does.
	Outfit(ctx context.Context, engines []string, say func(string)) (packages []string, err error)
	// Self tells what the machine is, as it tells others that reach it.
	Self() remote.Greeting
	// Guard sees to it that nodes go on that stand still when this process is killed, until it is let go.
	Guard(nodes ...*spec.Node) (letGo func(), err error)
	// Later lets a command line of this program run later, whatever becomes of this process.
	Later(ctx context.Context, l schedule.Job) error
	// Waiting returns the command lines that are to run.
	Waiting() ([]schedule.Pending, error)
	// Cancel takes back one that is to run, if it is there.
	Cancel(name string) error
}

// This is the machine on which the program runs, with Orrery's state in these directories.
type This struct {
	Dirs    host.Dirs
	Version string // of this program
}

// Allowed wants root.
func (This) Allowed() error {
	if os.Geteuid() == 0 {
		return nil
	}
	return problem.New(problem.Unable, "this needs root").Try("sudo orrery …")
}

// Host returns this machine with all its engines.
func (m This) Host(name, key string, secrets apply.Secrets) apply.Host {
	w := local.New(name, key, m.Dirs, all.Engines(m.Dirs, image.Open(m.Dirs.State)), secrets)
	w.Guard, w.Waiter = m.Guard, m
	return w.Host
}

// Guard starts a process for it.
func (m This) Guard(nodes ...*spec.Node) (letGo func(), err error) { return guard.Start(m.Dirs, nodes) }

// Later lets systemd run it, or a process that waits. What is put on record for that must not be
// covered by what is mounted over the run directory when a site comes up, where /run is on a disk:
// nobody would know then that somebody waits.
func (m This) Later(ctx context.Context, l schedule.Job) error {
	letGo, err := host.HoldInMemory(ctx, m.Dirs.Run)
	if err != nil {
		return err
	}
	defer letGo()
	return schedule.Run(l, m.Dirs)
}

// Waiting returns what systemd or a process is to run.
func (m This) Waiting() ([]schedule.Pending, error) { return schedule.List(m.Dirs) }

// Cancel ends the timer or process.
func (m This) Cancel(name string) error { return schedule.Cancel(name, m.Dirs) }
