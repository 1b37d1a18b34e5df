// Package vm has what the engines of virtual machines share. That is the files of a machine beside
// the node's record, its disks and links, the sequence of its start and stop, and the connections
// to the agents in guests.
package vm

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host/cgroup"
	"orrery/internal/network"
	"orrery/internal/observe"
	"orrery/internal/problem"
)

// A Machine is a node that is a virtual machine.
type Machine struct {
	nodedir.Dir
	Ref engine.Ref
	Run string // directory of files that exist while it runs, which only root can enter
}

// Of returns the machine of one of an engine's nodes.
func Of(nodes *nodedir.Nodes, ref engine.Ref) Machine {
	return Machine{Dir: nodes.Dir(ref), Ref: ref, Run: filepath.Join(nodes.Dirs.Run, "vm", ref.Site, strconv.Itoa(ref.ID))}
}

// Group returns the control group of the machine's programs.
func (m Machine) Group() cgroup.Group { return cgroup.OfNode(m.Ref.Site, m.Ref.ID) }

// StartingFile returns the path of a file that exists while the node is being started. If its run was
// killed, the node may come up or not.
func (m Machine) StartingFile() string { return m.File("starting") }

// StoppingFile returns the path of a file that exists while the node shuts down.
func (m Machine) StoppingFile() string { return m.File("stopping") }

// FreezingFile returns the path of a file that exists from before Orrery freezes the node until after
// it is thawed.
func (m Machine) FreezingFile() string { return m.File("freezing") }

// Freezer returns the freezer of the machine's programs.
func (m Machine) Freezer() cgroup.Freezer {
	return cgroup.Freezer{Group: m.Group(), Mark: m.FreezingFile()}
}

// Boot calls start, and calls end if the machine does not come up. In between, a file marks the
// machine for Sweep.
func (m Machine) Boot(start, end func() error) error {
	if err := os.WriteFile(m.StartingFile(), nil, 0o600); err != nil {
		return err
	}
	defer os.Remove(m.StartingFile()) //nolint:errcheck // what is left of it ends the node at the next sweep
	err := start()
	if err != nil {
		err = errors.Join(err, end())
	}
	return err
}

// ShutDown calls off to shut the machine down, if it runs, and then end to remove what is left. It
// calls end even if off ran into ctx's deadline. A file marks the machine for Sweep, because a
// machine that shuts down looks as if it ran.
func (m Machine) ShutDown(ctx context.Context, off, end func() error) error {
	if len(m.Group().Processes()) > 0 {
		if err := os.WriteFile(m.StoppingFile(), nil, 0o600); err != nil {
			return err
		}
		err := ctx.Err()
		if err == nil {
			err = off()
		}
		if err != nil && !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
	if err := end(); err != nil {
		return err
	}
	return os.RemoveAll(m.StoppingFile())
}

// RemoveLinks removes the links of the machine.
func (m Machine) RemoveLinks() error {
	r, err := m.Read()
	if err != nil || len(r.NICs) == 0 { // the node is half made or missing
		return nil
	}
	var ends []string
	for _, nic := range r.NICs {
		ends = append(ends, nic.HostIfName)
	}
	return network.RemoveLinks(ends)
}

// RemoveRun removes the run directory of the machine, and the directories above that are then
// empty.
func (m Machine) RemoveRun() error {
	if err := os.RemoveAll(m.Run); err != nil {
		return err
	}
	_ = os.Remove(filepath.Dir(m.Run))
	_ = os.Remove(filepath.Dir(filepath.Dir(m.Run)))
	return nil
}

// Problem returns a problem about what the machine does not do.
func (m Machine) Problem(does string, err error) *problem.Problem {
	return problem.New(problem.Failed, "node %s %s", m.Ref.Name, does).At(m.Path()).Because(err)
}

// StartProblem returns why the machine does not start, with what its programs printed. If err has a
// cure of its own, StartProblem adds none.
func (m Machine) StartProblem(err error, printed string) error {
	var cause *problem.Problem
	known := errors.As(err, &cause) && cause.Cure != ""
	if printed != "" {
		err = fmt.Errorf("%w\n%s", err, printed)
	}
	p := m.Problem("could not start", err)
	if known {
		return p
	}
	return p.Try("orrery doctor shows what this host lacks")
}

// AsLack returns err as what a host lacks for virtual machines.
func AsLack(err error) observe.Missing {
	var p *problem.Problem
	if errors.As(err, &p) {
		return observe.Missing{What: p.What, Cure: p.Cure}
	}
	return observe.Missing{What: err.Error()}
}
