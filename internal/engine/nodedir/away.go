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
	givenFile  = "given.json" // the node belongs to another host; this host has only the rest of the directory
	resumeFile = "resume"     // the node was stopped for a move and must be started again
	cameFile   = "came"       // the node came from another host and has not run here yet, so the move can be undone
)

// A Giving records which host a node was given to, and the digest of what was sent.
type Giving struct {
	To  string `json:"to"`
	Sum string `json:"sum"`
}

// A Move holds the records of a node's move between hosts.
type Move struct{ dir Dir }

// Move returns the records of the node's move.
func (d Dir) Move() Move { return Move{d} }

// Give records, safely against a power cut, that the node belongs to another host. From then on
// this host does not list the node, and the node cannot be started here.
func (m Move) Give(g Giving) error { return host.WriteJSON(m.dir.File(givenFile), 0o600, g) }

// Reclaim removes the record that Give wrote.
func (m Move) Reclaim() error {
	if err := os.Remove(m.dir.File(givenFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Given reports whether the node was given away. A record that cannot be read counts as written.
func (m Move) Given() (Giving, bool) {
	text, err := tree.ReadFile(m.dir.File(givenFile), 1<<16)
	if errors.Is(err, fs.ErrNotExist) {
		return Giving{}, false
	}
	var g Giving
	if err == nil {
		_ = json.Unmarshal(text, &g) // a damaged record was written nevertheless
	}
	return g, true
}

// Resume records that the node must be started after a move. Runs removes the record.
func (m Move) Resume() error { return os.WriteFile(m.dir.File(resumeFile), nil, 0o600) }

// Resumes reports whether the node must be started after a move.
func (m Move) Resumes() bool { return exists(m.dir.File(resumeFile)) }

// Came reports whether the node has come from another host and has not run here yet.
func (m Move) Came() bool { return exists(m.dir.File(cameFile)) }

// Runs records that the node runs, and thereby ends its move.
func (m Move) Runs() error {
	for _, name := range []string{cameFile, resumeFile} {
		if err := os.Remove(m.dir.File(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Away returns the nodes of a site that were given away.
func Away(dirs host.Dirs, of string) ([]Found, error) { return found(dirs, of, "", true, Dir.Read) }

// Receive makes a node from layer, its private layer on another host. The node appears only when it
// is complete.
func (n *Nodes) Receive(_ context.Context, s *spec.Node, layer string, m engine.Mark, resumes bool) error {
	d := n.Dir(engine.RefOf(s))
	if exists(d.Path()) {
		return problem.New(problem.Surprise, "node %s (id %d) is there already", s.Name, s.ID).At(d.Path()).Try("plan again")
	}
	slot, err := slotsOf(n).take(s.Site, s.ID)
	if err != nil {
		return err
	}
	r := &Record{Node: *s, Slot: slot}
	fresh := making{d.beside("new"), r, n}
	if err := fresh.make(); err != nil {
		return err
	}
	if err := tree.RemoveAll(fresh.Private()); err != nil {
		return err
	}
	if err := os.Rename(layer, fresh.Private()); err != nil {
		return err
	}
	if err := makeOfHost(fresh.Dir, s); err != nil {
		return err
	}
	r.Configured, r.Config, r.Active, r.Proven, r.ProvenAt = m.Configured, m.Config, m.Active, "", time.Time{}
	if err := fresh.Write(r); err != nil {
		return err
	}
	if err := os.WriteFile(fresh.File(cameFile), nil, 0o600); err != nil {
		return err
	}
	if resumes {
		if err := fresh.Move().Resume(); err != nil {
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
