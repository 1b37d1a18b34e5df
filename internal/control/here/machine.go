// Package here opens this machine as a host of a site. It defines what operations need from a
// machine. Other packages of control do not know how steps are carried out on it.
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

// A Machine is the machine that operations work on.
type Machine interface {
	// Allowed returns an Unable problem if the caller may not change the machine or read all of its
	// state.
	Allowed() error
	// Host returns the machine as a host, called name, of the site with the given key. Secrets
	// resolves the secrets that steps refer to.
	Host(name, key string, secrets apply.Secrets) apply.Host
	// Reach connects to another host of a site.
	Reach(ctx context.Context, h site.Host) (*remote.Link, error)
	// Inspect returns what the machine has of the things that nodes need.
	Inspect() doctor.Facts
	// Try returns, for each way to another host, the size of the largest packet that came back, or
	// 0 if none did.
	Try(ctx context.Context, ways []path.Route) []int
	// Outfit installs what nodes of some engines need and the machine lacks. It returns the names
	// of the packages, and reports its progress to say.
	Outfit(ctx context.Context, engines []string, say func(string)) (packages []string, err error)
	// Self returns the greeting that this machine sends to hosts that connect to it.
	Self() remote.Greeting
	// Guard makes sure that frozen nodes are resumed if this process is killed. The guard ends when
	// letGo is called.
	Guard(nodes ...*spec.Node) (letGo func(), err error)
	// Later schedules a command line of this program. It runs even if this process ends.
	Later(ctx context.Context, l schedule.Job) error
	// Waiting returns the scheduled command lines.
	Waiting() ([]schedule.Pending, error)
	// Cancel removes a scheduled command line, if it exists.
	Cancel(name string) error
}

// LocalMachine is the machine on which the program runs.
type LocalMachine struct {
	Dirs    host.Dirs
	Version string // of this program
}

// Allowed returns an Unable problem unless the caller is root.
func (LocalMachine) Allowed() error {
	if os.Geteuid() == 0 {
		return nil
	}
	return problem.New(problem.Unable, "this needs root").Try("sudo orrery …")
}

// Host returns this machine with all its engines.
func (m LocalMachine) Host(name, key string, secrets apply.Secrets) apply.Host {
	w := local.ThisMachine(name, key, m.Dirs, all.Engines(m.Dirs, image.Open(m.Dirs.State)), secrets)
	w.Guard, w.Waiter = m.Guard, m
	return w.Host
}

// Guard starts a process that guards the nodes.
func (m LocalMachine) Guard(nodes ...*spec.Node) (letGo func(), err error) {
	return guard.Start(m.Dirs, nodes)
}

// Later schedules the job with systemd or starts a process that waits. The record of the job must
// be in a tmpfs over the run directory. If /run is on a disk, a tmpfs is mounted there when a site
// comes up, and it would hide an earlier record.
func (m LocalMachine) Later(ctx context.Context, l schedule.Job) error {
	letGo, err := host.EnsureInMemory(ctx, m.Dirs.Run)
	if err != nil {
		return err
	}
	defer letGo()
	return schedule.Run(l, m.Dirs)
}

// Waiting returns what systemd or waiting processes will run.
func (m LocalMachine) Waiting() ([]schedule.Pending, error) { return schedule.List(m.Dirs) }

// Cancel stops the timer or the waiting process.
func (m LocalMachine) Cancel(name string) error { return schedule.Cancel(name, m.Dirs) }
