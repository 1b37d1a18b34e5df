package nodedir

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/engine"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
)

// Files that record a node's moves between hosts.
const (
	movedFile   = "given.json" // the node belongs to another host; this host has only the rest of the directory
	resumeFile  = "resume"     // the node was stopped for a move and must be started again
	arrivedFile = "came"       // the node came from another host and has not run here yet, so the move can be undone
)

// A MoveRecord records which host a node has moved to, and the digest of what was sent.
type MoveRecord struct {
	To  string `json:"to"`
	Sum string `json:"sum"`
}

// A Move holds the records of a node's move between hosts.
type Move struct{ dir Dir }

// Move returns the records of the node's move.
func (d Dir) Move() Move { return Move{d} }

// SetMovedTo records, safely against a power cut, that the node belongs to another host. From then on
// this host does not list the node, and the node cannot be started here.
func (m Move) SetMovedTo(g MoveRecord) error { return host.WriteJSON(m.dir.File(movedFile), 0o600, g) }

// Cancel removes the record that SetMovedTo wrote.
func (m Move) Cancel() error {
	if err := os.Remove(m.dir.File(movedFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// MovedTo reports whether the node was given away. A record that cannot be read counts as written.
func (m Move) MovedTo() (MoveRecord, bool) {
	text, err := tree.ReadFile(m.dir.File(movedFile), 1<<16)
	if errors.Is(err, fs.ErrNotExist) {
		return MoveRecord{}, false
	}
	var g MoveRecord
	if err == nil {
		_ = json.Unmarshal(text, &g) // a damaged record was written nevertheless
	}
	return g, true
}

// SetResume records that the node must be started after a move. Runs removes the record.
func (m Move) SetResume() error { return os.WriteFile(m.dir.File(resumeFile), nil, 0o600) }

// MustResume reports whether the node must be started after a move.
func (m Move) MustResume() bool { return exists(m.dir.File(resumeFile)) }

// Arrived reports whether the node has come from another host and has not run here yet.
func (m Move) Arrived() bool { return exists(m.dir.File(arrivedFile)) }

// Finish records that the node runs, and thereby ends its move.
func (m Move) Finish() error {
	for _, name := range []string{arrivedFile, resumeFile} {
		if err := os.Remove(m.dir.File(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// ListMoved returns the nodes of a site that were given away.
func ListMoved(dirs host.Dirs, of string) ([]Found, error) {
	return findNodes(dirs, of, "", true, Dir.Read)
}

// Receive makes a node from layer, its private layer on another host. The node appears only when it
// is complete.
func (n *Nodes) Receive(_ context.Context, s *spec.Node, layer string, m engine.Progress, resumes bool) error {
	d := n.Dir(engine.RefOf(s))
	if exists(d.Path()) {
		return problem.New(problem.Surprise, "node %s (id %d) already exists", s.Name, s.ID).At(d.Path()).Try("plan again")
	}
	slot, err := slotsOf(n).allocate(s.Site, s.ID)
	if err != nil {
		return err
	}
	r := &Record{Node: *s, Slot: slot}
	fresh := newNode{d.sibling("new"), r, n}
	if err := fresh.make(); err != nil {
		return err
	}
	if err := tree.RemoveAll(fresh.Private()); err != nil {
		return err
	}
	if err := os.Rename(layer, fresh.Private()); err != nil {
		return err
	}
	if err := writeHostSpecificFiles(fresh.Dir, s); err != nil {
		return err
	}
	r.Configured, r.Config, r.Active, r.Proven, r.ProvenAt = m.Configured, m.Config, m.Active, "", time.Time{}
	if err := fresh.Write(r); err != nil {
		return err
	}
	if err := os.WriteFile(fresh.File(arrivedFile), nil, 0o600); err != nil {
		return err
	}
	if resumes {
		if err := fresh.Move().SetResume(); err != nil {
			return err
		}
	}
	if err := os.Rename(fresh.Path(), d.Path()); err != nil {
		return err
	}
	top, err := os.Open(n.Dirs.Nodes(s.Site))
	if err != nil {
		return err
	}
	defer top.Close()
	// The source host removes its copy when Receive returns.
	return os.NewSyscallError("syncfs", unix.Syncfs(int(top.Fd())))
}
