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

// nodeMoves handles nodes on their way to and from other hosts. What has been sent is remembered for
// one run only, and the next run sends everything again.
type nodeMoves struct {
	*SiteState
	mutex   sync.Mutex
	senders map[int]*treesync.Sender
	sums    map[int]string // digests of what was sent of nodes when they were frozen
}

func (m *nodeMoves) dir(id int) nodedir.Dir { return nodedir.Of(m.Dirs, m.Key, id) }

func (m *nodeMoves) store(id int) treesync.Receiver {
	return treesync.Receiver{Dir: filepath.Join(m.Dirs.Arrivals(m.Key), strconv.Itoa(id))}
}

// observe adds the nodes that are moving to seen.
func (m *nodeMoves) observe(seen *observe.Host) error {
	away, err := nodedir.ListMoved(m.Dirs, m.Key)
	if err != nil {
		return err
	}
	for _, f := range away {
		g, _ := m.dir(f.ID).Move().MovedTo()
		n := observe.Node{Node: f.Node, State: observe.Stopped, Configured: f.Configured, Active: f.Active,
			Resume: m.dir(f.ID).Move().MustResume()}
		seen.OutgoingMoves = append(seen.OutgoingMoves, observe.OutgoingMove{Node: n, To: g.To, Sum: g.Sum})
	}
	all, err := treesync.States(m.Dirs.Arrivals(m.Key))
	for _, r := range all {
		seen.IncomingMoves = append(seen.IncomingMoves, observe.IncomingMove{Name: r.Name, ID: r.ID, From: r.From, Sum: r.Sum,
			Whole: r.Whole})
	}
	return err
}

// sweep removes the received data of nodes that now exist here.
func (m *nodeMoves) sweep() error {
	entries, err := os.ReadDir(m.Dirs.Arrivals(m.Key))
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		id, bad := strconv.Atoi(e.Name())
		if bad != nil {
			continue
		}
		_, given := m.dir(id).Move().MovedTo()
		if r, bad := m.store(id).Read(); bad != nil || r.ID != id || tree.Exists(m.dir(id).Path()) && !given {
			err = errors.Join(err, m.store(id).Remove())
		}
	}
	return err
}

// movingVolumes returns the directories of the volumes that move with a node, by the names under which they
// are sent. These are the volumes in this host's state directory that no other node uses. For a
// node in quarantine, they are the copies. Neither the volumes that it shares with the live node
// nor the keys are its own.
func (m *nodeMoves) movingVolumes(n *spec.Node) map[string]string {
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

// hostKeyDir returns the directory of the node's SSH host keys, or "" if it has no keys of its own.
func (m *nodeMoves) hostKeyDir(n *spec.Node) string {
	if n.Staged {
		return ""
	}
	return filepath.Join(m.Dirs.Keys(m.Key), n.Name)
}

// runs reports whether a node is running rather than frozen or stopped.
func (m *nodeMoves) runs(ctx context.Context, e engine.Engine, n *spec.Node) (bool, error) {
	nodes, err := e.List(ctx, m.Key)
	i := slices.IndexFunc(nodes, func(other observe.Node) bool { return other.ID == n.ID })
	if err == nil && i < 0 {
		err = problem.New(problem.Surprise, "node %s is gone", n.Name).Try("plan again")
	}
	return err == nil && nodes[i].Runs(), err
}

// Copying a running node ends when at most little bytes are left or after often rounds. It also
// ends when a round leaves more than shrink times the bytes of the round before.
const (
	minRoundBytes = 1 << 20
	maxRoundRatio = 0.8
	maxRounds     = 8
)

// send sends another host over a stream what a node has written. For a frozen node, it sends the
// rest. It returns the digest of all data that the receiver then has.
func (m *nodeMoves) send(ctx context.Context, s *plan.Step, way io.ReadWriter, say func(string)) (string, error) {
	r, err := m.recorded(s.Old)
	if err != nil {
		return "", err
	}
	n := &r.Node
	e, err := m.engine(n)
	if err != nil {
		return "", err
	}
	of, ok := e.(engine.Migrator)
	if !ok {
		return "", problem.New(problem.Unable, "node %s: the engine %s cannot move nodes", n.Name, n.Engine)
	}
	still := s.Kind == plan.SendNode
	if runs, err := m.runs(ctx, e, n); err != nil || runs && still {
		return "", cmp.Or[error](err, problem.New(problem.Surprise, "node %s runs", n.Name).Try("plan again"))
	}
	sources := []treesync.Source{{Name: "private", Dir: of.Private(engine.RefOf(n)), Without: of.HostSpecificFiles(n)}}
	if keys := m.hostKeyDir(n); keys != "" {
		sources = append(sources, treesync.Source{Name: "keys", Dir: keys})
	}
	for name, dir := range m.movingVolumes(n) {
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
		if still || weight < minRoundBytes || i == maxRounds || before >= 0 &&
			float64(weight) > maxRoundRatio*float64(before) {
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

// checkAbsent returns an error if the node to be received already exists.
func (m *nodeMoves) checkAbsent(s *plan.Step) error {
	if dir := m.dir(s.Node.ID).Path(); tree.Exists(dir) {
		return problem.New(problem.Surprise, "node %s (id %d) already exists", s.Node.Name, s.Node.ID).At(dir).
			Try("plan again")
	}
	return nil
}

// receiveData stores what another host sends of a node, until the stream ends. The data is not trusted.
func (m *nodeMoves) receiveData(s *plan.Step, way io.ReadWriter) error {
	if err := m.checkAbsent(s); err != nil {
		return err
	}
	own := m.movingVolumes(s.Node)
	return m.store(s.Node.ID).Receive(way, treesync.State{Name: s.Node.Name, ID: s.Node.ID, From: s.Peer},
		func(name string) bool {
			_, ok := own[name]
			return ok || name == "private" || name == "keys" && m.hostKeyDir(s.Node) != ""
		})
}

// do does a step of a move, except for the copying.
func (m *nodeMoves) do(ctx context.Context, s *plan.Step) error {
	switch s.Kind {
	case plan.HandOverNode:
		return m.handOver(ctx, s)
	case plan.ReceiveNode:
		return m.receive(ctx, s)
	case plan.CleanUpNode:
		return m.removeMoved(ctx, s)
	case plan.ReclaimNode:
		return m.dir(s.Old.ID).Move().Cancel()
	case plan.DiscardNode:
		return m.dropReceived(ctx, s.Old)
	}
	return unknown(s)
}

// handOver records that a node belongs to another host, which has all of its data.
func (m *nodeMoves) handOver(ctx context.Context, s *plan.Step) error {
	r, err := m.recorded(s.Old)
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
	if runs, err := m.runs(ctx, e, &r.Node); err != nil || runs || sum == "" || sum != s.Digest {
		return cmp.Or[error](err, problem.New(problem.Surprise, "node %s: its current state has not been sent to host %s", r.Name,
			s.Peer).Try("plan again"))
	}
	return m.dir(r.ID).Move().SetMovedTo(nodedir.MoveRecord{To: s.Peer, Sum: sum})
}

// receive creates a node from the received data. Until it ends, the data is marked as incomplete. A
// run that finds it so drops the data, and the node goes back to the host that sent it.
func (m *nodeMoves) receive(ctx context.Context, s *plan.Step) error {
	e, err := m.engine(s.Node)
	if err != nil {
		return err
	}
	of, ok := e.(engine.Migrator)
	store := m.store(s.Node.ID)
	state, err := store.Read()
	if err != nil || !ok || !state.Whole || state.Sum == "" || state.Sum != s.Digest || state.From != s.Peer ||
		state.Name != s.Node.Name {
		return problem.New(problem.Surprise, "node %s: the data received from host %s does not match what it sent", s.Node.Name,
			s.Peer).At(store.Dir).Try("plan again")
	}
	state.Sum, state.Whole = "", false
	if err := store.Write(state); err != nil {
		return err
	}
	for name, path := range m.movingVolumes(s.Node) {
		if from := store.Tree(name); tree.Exists(from) {
			if err := setAsideVolume(path); err != nil {
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
	if keys := m.hostKeyDir(s.Node); keys != "" {
		if err := storeKeys(store, keys); err != nil {
			return err
		}
	}
	mark := engine.Progress{Configured: s.Configured, Config: s.Old.Config, Active: s.Active}
	if err := of.Receive(ctx, s.Node, store.Tree("private"), mark, s.Runs); err != nil {
		return err
	}
	return store.Remove()
}

// setAsideVolume renames a volume that a node of the same name once left here.
func setAsideVolume(path string) error {
	if !tree.Exists(path) {
		return nil
	}
	return os.Rename(path, path+".before-"+time.Now().UTC().Format("20060102-150405.000"))
}

// storeKeys stores the SSH host keys of a node. Because another host has sent them, it accepts only
// small files and writes them as new files.
func storeKeys(from treesync.Receiver, to string) error {
	files, err := from.Files("keys")
	if err != nil || len(files) == 0 { // the node had no keys
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

// removeMoved removes what is kept of a node that has moved to another host.
func (m *nodeMoves) removeMoved(ctx context.Context, s *plan.Step) error {
	g, given := m.dir(s.Old.ID).Move().MovedTo()
	if !given {
		if !tree.Exists(m.dir(s.Old.ID).Path()) {
			return nil // a run that was killed has already removed it
		}
		return problem.New(problem.Surprise, "node %s was not handed over", s.Old.Name).At(m.dir(s.Old.ID).Path()).
			Try("plan again")
	}
	if g.To != s.Peer {
		return problem.New(problem.Surprise, "node %s was handed over to host %s, not to %s", s.Old.Name, g.To, s.Peer).
			Try("plan again")
	}
	return m.remove(ctx, s.Old)
}

// dropReceived removes the received data of a node, even if the node was created from it but has not run
// here.
func (m *nodeMoves) dropReceived(ctx context.Context, n *spec.Node) error {
	dir := m.dir(n.ID)
	if tree.Exists(dir.Path()) {
		if !dir.Move().Arrived() {
			return problem.New(problem.Surprise, "node %s has run on this host", n.Name).At(dir.Path()).Try("plan again")
		}
		if err := m.remove(ctx, n); err != nil {
			return err
		}
	}
	return m.store(n.ID).Remove()
}

// remove removes a node with its volumes and keys.
func (m *nodeMoves) remove(ctx context.Context, n *spec.Node) error {
	r, err := m.dir(n.ID).Read()
	if err != nil {
		return err
	}
	for _, path := range m.movingVolumes(&r.Node) {
		if tree.Exists(path) {
			if err := m.Backends.Volumes.Erase(path); err != nil {
				return err
			}
		}
	}
	if keys := m.hostKeyDir(&r.Node); keys != "" {
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
