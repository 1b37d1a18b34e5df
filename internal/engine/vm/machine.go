// Package vm has what engines of virtual machines share: the files of a machine beside the node's
// record, its disks and links, the order of its start and its end, and the connections to the agents in guests.
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
	Run string // directory of what is there while it runs: root's
}

// Of returns a machine of an engine.
func Of(nodes *nodedir.Nodes, ref engine.Ref) Machine {
	return Machine{Dir: nodes.Dir(ref), Ref: ref, Run: filepath.Join(nodes.Dirs.Run, "vm", ref.Site, strconv.Itoa(ref.ID))}
}

// Group is the control group of what runs for it.
func (m Machine) Group() cgroup.Group { return cgroup.Of(m.Ref.Site, m.Ref.ID) }

// Starting is a file that is there until the node has been started. One whose starter was killed
// may come up or not.
func (m Machine) Starting() string { return m.File("starting") }

// Stopping is a file that is there while the node shuts down.
func (m Machine) Stopping() string { return m.File("stopping") }

// Freezing is a file that is there from before the node is frozen by us until after it goes on.
func (m Machine) Freezing() string { return m.File("freezing") }

// Frost lets all that runs for the machine stand still.
func (m Machine) Frost() cgroup.Frost { return cgroup.Frost{Group: m.Group(), Mark: m.Freezing()} }

// Boot starts the machine, and ends what there is of it if it does not come up. Meanwhile a file
// tells Sweep of it.
func (m Machine) Boot(start, end func() error) error {
	if err := os.WriteFile(m.Starting(), nil, 0o600); err != nil {
		return err
	}
	defer os.Remove(m.Starting()) //nolint:errcheck // what is left of it ends the node at the next sweep
	err := start()
	if err != nil {
		err = errors.Join(err, end())
	}
	return err
}

// ShutDown lets the machine shut down, if it runs, for as long as ctx has time, and then ends what
// is left of it. A file tells Sweep of it meanwhile: one that shuts down looks as if it ran.
func (m Machine) ShutDown(ctx context.Context, off, end func() error) error {
	if len(m.Group().Processes()) > 0 {
		if err := os.WriteFile(m.Stopping(), nil, 0o600); err != nil {
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
	return os.RemoveAll(m.Stopping())
}

// Unlink removes the links of the machine.
func (m Machine) Unlink() error {
	r, err := m.Read()
	if err != nil || len(r.NICs) == 0 { // it is half made, or not there
		return nil
	}
	var ends []string
	for _, nic := range r.NICs {
		ends = append(ends, nic.HostEnd)
	}
	return network.RemoveLinks(ends)
}

// RemoveRun removes what is there while the machine runs, and the directories above that are empty then.
func (m Machine) RemoveRun() error {
	if err := os.RemoveAll(m.Run); err != nil {
		return err
	}
	_ = os.Remove(filepath.Dir(m.Run))
	_ = os.Remove(filepath.Dir(filepath.Dir(m.Run)))
	return nil
}

// Fails says what the machine does not do.
func (m Machine) Fails(does string, err error) *problem.Problem {
	return problem.New(problem.Failed, "node %s %s", m.Ref.Name, does).At(m.Path()).Because(err)
}

// StartProblem says why the machine does not start, and what was printed of it. A cause that has a
// cure of its own keeps it.
func (m Machine) StartProblem(err error, printed string) error {
	var cause *problem.Problem
	known := errors.As(err, &cause) && cause.Cure != ""
	if printed != "" {
		err = fmt.Errorf("%w\n%s", err, printed)
	}
	p := m.Fails("does not start", err)
	if known {
		return p
	}
	return p.Try("orrery doctor tells what this host lacks")
}

// LackOf says what a host lacks for virtual machines.
func LackOf(err error) observe.Lack {
	var p *problem.Problem
	if errors.As(err, &p) {
		return observe.Lack{What: p.What, Cure: p.Cure}
	}
	return observe.Lack{What: err.Error()}
}
