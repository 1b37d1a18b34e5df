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

// What says of a node that it goes from host to host.
const (
	givenFile  = "given.json" // it is another host's; only what is kept of it is here
	resumeFile = "resume"     // it was stopped for that, and is to run again
	cameFile   = "came"       // it has come from another host, and has not run here yet: there is a way back
)

// A Giving says to which host a node was given, and what of it.
type Giving struct {
	To  string `json:"to"`
	Sum string `json:"sum"`
}

// A Move is what is kept of a node that goes from host to host.
type Move struct{ dir Dir }

// Move returns what is kept of a move of the node.
func (d Dir) Move() Move { return Move{d} }

// Give takes down that the node is another host's, safe against a power cut. From then on it is not
// among the nodes of this one, and nobody can start it here.
func (m Move) Give(g Giving) error { return host.WriteJSON(m.dir.File(givenFile), 0o600, g) }

// Reclaim takes that back.
func (m Move) Reclaim() error {
	if err := os.Remove(m.dir.File(givenFile)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Given tells whether the node was given away. What cannot be read was.
func (m Move) Given() (Giving, bool) {
	text, err := tree.ReadFile(m.dir.File(givenFile), 1<<16)
	if errors.Is(err, fs.ErrNotExist) {
		return Giving{}, false
	}
	var g Giving
	if err == nil {
		_ = json.Unmarshal(text, &g) // what is damaged was written, too
	}
	return g, true
}

// Resume notes that the node is to run again after a move, until it has run or is said not to.
func (m Move) Resume() error { return os.WriteFile(m.dir.File(resumeFile), nil, 0o600) }

// Resumes reports whether it is.
func (m Move) Resumes() bool { return exists(m.dir.File(resumeFile)) }

// Came reports whether the node has come from another host and has not run here yet.
func (m Move) Came() bool { return exists(m.dir.File(cameFile)) }

// Runs notes that the node runs: what there is to say of a move has come to its end.
func (m Move) Runs() error {
	for _, name := range []string{cameFile, resumeFile} {
		if err := os.Remove(m.dir.File(name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// Away finds the nodes of a site that were given away.
func Away(dirs host.Dirs, of string) ([]Found, error) { return found(dirs, of, "", true, Dir.Read) }

// Receive makes a node of what has come from another host: layer is its private layer there. Before
// it is there as a whole, nothing of it is.
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
	// the host that it came from removes it when this is done
	return os.NewSyscallError("syncfs", unix.Syncfs(int(top.Fd())))
}
