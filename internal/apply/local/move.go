package local

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
	"orrery/internal/treesync"
	"orrery/internal/volume"
)

// moves are nodes on their way to and from other hosts. What has been sent is remembered for one
// run only: whoever comes after sends all of it anew.
type moves struct {
	*Place
	mutex   sync.Mutex
	senders map[int]*treesync.Sender
	sums    map[int]string // of what was sent of nodes when they stood still
}

func (m *moves) dir(id int) nodedir.Dir { return nodedir.Of(m.Dirs, m.Key, id) }

func (m *moves) store(id int) treesync.Receiver {
	return treesync.Receiver{Dir: filepath.Join(m.Dirs.Arrivals(m.Key), strconv.Itoa(id))}
}

// observe looks at what is on its way.
func (m *moves) observe(seen *observe.Host) error {
	away, err := nodedir.Away(m.Dirs, m.Key)
	if err != nil {
		return err
	}
	for _, f := range away {
		g, _ := m.dir(f.ID).Move().Given()
		n := observe.Node{Node: f.Node, State: observe.Stopped, Configured: f.Configured, Active: f.Active,
			Resume: m.dir(f.ID).Move().Resumes()}
		seen.Given = append(seen.Given, observe.Given{Node: n, To: g.To, Sum: g.Sum})
	}
	all, err := treesync.States(m.Dirs.Arrivals(m.Key))
	for _, r := range all {
		seen.Arrivals = append(seen.Arrivals, observe.Arrival{Name: r.Name, ID: r.ID, From: r.From, Sum: r.Sum,
			Whole: r.Whole})
	}
	return err
}

// sweep removes what came of nodes that are nodes here now.
func (m *moves) sweep() error {
	entries, err := os.ReadDir(m.Dirs.Arrivals(m.Key))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		id, bad := strconv.Atoi(e.Name())
		if bad != nil {
			continue
		}
		_, given := m.dir(id).Move().Given()
		if r, bad := m.store(id).Read(); bad != nil || r.ID != id || tree.Exists(m.dir(id).Path()) && !given {
			err = errors.Join(err, m.store(id).Remove())
		}
	}
	return err
}

// own returns the volumes of a node that are its own and kept with the state of this host, by the
// names under which they travel. In quarantine, these are copies; others, which it has in common
// with what is live of it, are not its own, and neither are its keys.
func (m *moves) own(n *spec.Node) map[string]string {
	all := map[string]string{}
	for _, at := range n.Mounts {
		owned := at.From().WithState && at.Copy == ""
		if n.Staged {
			owned = at.Copy != "" && at.Copy != spec.NoCopy
		}
		if owned && !at.Shared {
			all["volumes/"+at.Volume] = volume.Path(m.Dirs, m.Key, n.Name, at)
		}
	}
	return all
}

// keys returns where the SSH host keys of a node are, if they are its own; "": they are not.
func (m *moves) keys(n *spec.Node) string {
	if n.Staged {
		return ""
	}
	return filepath.Join(m.Dirs.Keys(m.Key), n.Name)
}

// runs reports whether a node does not stand still.
func (m *moves) runs(ctx context.Context, e engine.Engine, n *spec.Node) (bool, error) {
	nodes, err := e.List(ctx, m.Key)
	i := slices.IndexFunc(nodes, func(other observe.Node) bool { return other.ID == n.ID })
	if err == nil && i < 0 {
		err = problem.New(problem.Surprise, "node %s is gone", n.Name).Try("plan again")
	}
	return err == nil && nodes[i].Runs(), err
}

// How long a node is copied while it runs: until so little is left, or it does not become less, or so often.
const (
	little = 1 << 20
	shrink = 0.8
	often  = 8
)

// send sends what a node has written to another host, along a stream; of one that stands still the
// rest. It returns the sum of all that the other one has.
func (m *moves) send(ctx context.Context, s *plan.Step, way io.ReadWriter, say func(string)) (string, error) {
	r, err := m.recorded(s.Was)
	if err != nil {
		return "", err
	}
	n := &r.Node
	e, err := m.engine(n)
	if err != nil {
		return "", err
	}
	of, ok := e.(engine.Receiver)
	if !ok {
		return "", problem.New(problem.Unable, "node %s: the engine %s moves no nodes", n.Name, n.Engine)
	}
	still := s.Kind == plan.SendNode
	if runs, err := m.runs(ctx, e, n); err != nil || runs && still {
		return "", cmp.Or[error](err, problem.New(problem.Surprise, "node %s runs", n.Name).Try("plan again"))
	}
	sources := []treesync.Source{{Name: "private", Dir: of.Private(engine.RefOf(n)), Without: of.OfHost(n)}}
	if keys := m.keys(n); keys != "" {
		sources = append(sources, treesync.Source{Name: "keys", Dir: keys})
	}
	for name, dir := range m.own(n) {
		sources = append(sources, treesync.Source{Name: name, Dir: dir})
	}
	slices.SortFunc(sources, func(a, b treesync.Source) int { return strings.Compare(a.Name, b.Name) })
	m.mutex.Lock()
	if m.senders == nil {
		m.senders, m.sums = map[int]*treesync.Sender{}, map[int]string{}
	}
	sender := m.senders[n.ID]
	if sender == nil {
		sender = &treesync.Sender{}
		m.senders[n.ID] = sender
	}
	delete(m.sums, n.ID)
	m.mutex.Unlock()
	along, err := treesync.NewStream(way)
	if err != nil {
		return "", err
	}
	before := int64(-1)
	for i := 1; ; i++ {
		round, err := sender.Send(ctx, along, sources, still)
		if err != nil {
			return "", err
		}
		say(fmt.Sprintf("%.1f MB of %d files in %.1f s", float64(round.Bytes)/1e6, round.Files, round.Took.Seconds()))
		if i == 1 && len(round.Left) > 0 {
			say("left behind: " + strings.Join(round.Left, "; "))
		}
		weight := round.Bytes + int64(round.Files)*4096
		if still || weight < little || i == often || before >= 0 && float64(weight) > shrink*float64(before) {
			if still {
				m.mutex.Lock()
				m.sums[n.ID] = round.Sum
				m.mutex.Unlock()
			}
			return round.Sum, nil
		}
		before = weight
	}
}

// free wants that a node is not there to which something comes.
func (m *moves) free(s *plan.Step) error {
	if dir := m.dir(s.Node.ID).Path(); tree.Exists(dir) {
		return problem.New(problem.Surprise, "node %s (id %d) is there already", s.Node.Name, s.Node.ID).At(dir).
			Try("plan again")
	}
	return nil
}

// take takes in what comes of a node from another host, until the stream ends. What comes is not believed.
func (m *moves) take(s *plan.Step, way io.ReadWriter) error {
	if err := m.free(s); err != nil {
		return err
	}
	own := m.own(s.Node)
	return m.store(s.Node.ID).Receive(way, treesync.State{Name: s.Node.Name, ID: s.Node.ID, From: s.Peer},
		func(name string) bool {
			_, ok := own[name]
			return ok || name == "private" || name == "keys" && m.keys(s.Node) != ""
		})
}

// do does a step of a move but the copying.
func (m *moves) do(ctx context.Context, s *plan.Step) error {
	switch s.Kind {
	case plan.GiveNode:
		return m.give(ctx, s)
	case plan.ReceiveNode:
		return m.receive(ctx, s)
	case plan.LeaveNode:
		return m.leave(ctx, s)
	case plan.ReclaimNode:
		return m.dir(s.Was.ID).Move().Reclaim()
	case plan.DropNode:
		return m.drop(ctx, s.Was)
	}
	return unknown(s)
}

// give takes down that a node is another host's, which has all of it.
func (m *moves) give(ctx context.Context, s *plan.Step) error {
	r, err := m.recorded(s.Was)
	if err != nil {
		return err
	}
	e, err := m.engine(&r.Node)
	if err != nil {
		return err
	}
	m.mutex.Lock()
	sum := m.sums[r.ID]
	m.mutex.Unlock()
	if runs, err := m.runs(ctx, e, &r.Node); err != nil || runs || sum == "" || sum != s.Sum {
		return cmp.Or[error](err, problem.New(problem.Surprise, "node %s has not been sent to host %s as it is now", r.Name,
			s.Peer).Try("plan again"))
	}
	return m.dir(r.ID).Move().Give(nodedir.Giving{To: s.Peer, Sum: sum})
}

// receive makes a node of what has come. As long as that is under way, nothing whole has come:
// whoever finds it so lets it go, and the host that has given the node has it again.
func (m *moves) receive(ctx context.Context, s *plan.Step) error {
	e, err := m.engine(s.Node)
	if err != nil {
		return err
	}
	of, ok := e.(engine.Receiver)
	store := m.store(s.Node.ID)
	state, err := store.Read()
	if err != nil || !ok || !state.Whole || state.Sum == "" || state.Sum != s.Sum || state.From != s.Peer ||
		state.Name != s.Node.Name {
		return problem.New(problem.Surprise, "node %s: what has come from host %s is not what that has given", s.Node.Name,
			s.Peer).At(store.Dir).Try("plan again")
	}
	state.Sum, state.Whole = "", false
	if err := store.Write(state); err != nil {
		return err
	}
	for name, path := range m.own(s.Node) {
		if from := store.Tree(name); tree.Exists(from) {
			if err := aside(path); err != nil {
				return err
			}
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return err
			}
			if err := os.Rename(from, path); err != nil {
				return err
			}
		}
	}
	if keys := m.keys(s.Node); keys != "" {
		if err := takeKeys(store, keys); err != nil {
			return err
		}
	}
	mark := engine.Mark{Configured: s.Configured, Config: s.Was.Config, Active: s.Active}
	if err := of.Receive(ctx, s.Node, store.Tree("private"), mark, s.Runs); err != nil {
		return err
	}
	return store.Remove()
}

// aside puts a volume aside that a node of the same name has left here at some time.
func aside(path string) error {
	if !tree.Exists(path) {
		return nil
	}
	return os.Rename(path, path+".before-"+time.Now().UTC().Format("20060102-150405.000"))
}

// takeKeys takes the SSH host keys of a node. Another host has sent them, so nothing but small
// files is taken, and these as new ones.
func takeKeys(from treesync.Receiver, to string) error {
	files, err := from.Files("keys")
	if err != nil || len(files) == 0 { // it had none
		return err
	}
	if err := os.MkdirAll(to, 0o700); err != nil {
		return err
	}
	for name, text := range files {
		mode := uint32(0o600)
		if strings.HasSuffix(name, ".pub") {
			mode = 0o644
		}
		if err := host.WriteFile(host.File{Path: filepath.Join(to, name), Content: text, Mode: mode}); err != nil {
			return err
		}
	}
	return nil
}

// leave removes what is kept of a node that is on another host now.
func (m *moves) leave(ctx context.Context, s *plan.Step) error {
	g, given := m.dir(s.Was.ID).Move().Given()
	if !given {
		if !tree.Exists(m.dir(s.Was.ID).Path()) {
			return nil // a run that was killed did it
		}
		return problem.New(problem.Surprise, "node %s was not given away", s.Was.Name).At(m.dir(s.Was.ID).Path()).
			Try("plan again")
	}
	if g.To != s.Peer {
		return problem.New(problem.Surprise, "node %s was given to host %s, and not to %s", s.Was.Name, g.To, s.Peer).
			Try("plan again")
	}
	return m.remove(ctx, s.Was)
}

// drop removes what has come of a node, also if that is a node by now which has not run here.
func (m *moves) drop(ctx context.Context, n *spec.Node) error {
	dir := m.dir(n.ID)
	if tree.Exists(dir.Path()) {
		if !dir.Move().Came() {
			return problem.New(problem.Surprise, "node %s has run on this host", n.Name).At(dir.Path()).Try("plan again")
		}
		if err := m.remove(ctx, n); err != nil {
			return err
		}
	}
	return m.store(n.ID).Remove()
}

// remove removes a node with its volumes and keys.
func (m *moves) remove(ctx context.Context, n *spec.Node) error {
	r, err := m.dir(n.ID).Read()
	if err != nil {
		return err
	}
	for _, path := range m.own(&r.Node) {
		if tree.Exists(path) {
			if err := m.Ground.Volumes.Erase(path); err != nil {
				return err
			}
		}
	}
	if keys := m.keys(&r.Node); keys != "" {
		if err := tree.RemoveAll(keys); err != nil {
			return err
		}
	}
	e, err := m.engine(&r.Node)
	if err != nil {
		return err
	}
	return e.Destroy(ctx, engine.RefOf(&r.Node))
}
