package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/volume"
)

// Options describe a snapshot to take. The caller holds the lock of the site and has swept its
// engines.
type Options struct {
	Dirs    host.Dirs
	Key     string // the key of the site
	Engines map[string]engine.Engine
	Nodes   []*nodedir.Record
	Who     string
	Memory  bool   // include the memory of running nodes whose engine supports it
	ID      string // or "" for one made from the time
	// Scheduled means that the site file asks for it, and not a user.
	Scheduled bool
	Barrier   Barrier // shared with the other hosts, or nil if this host takes the snapshot alone
	// Guard, if set, makes sure that frozen nodes resume if this process is killed before letGo is
	// called.
	Guard func(nodes ...*spec.Node) (letGo func(), err error)
}

// Take takes a snapshot. It copies most data while the nodes run. Then it freezes all nodes at
// once, copies what has changed since, and resumes them. Whatever happens, a node stays frozen only
// if its engine cannot thaw it, and Take reports that.
func Take(ctx context.Context, o Options) (*Snapshot, error) {
	began := time.Now()
	t, err := o.prepare(ctx, began)
	if err != nil {
		return nil, err
	}
	err = t.take(ctx)
	if err == nil {
		t.Seconds = time.Since(began).Seconds()
		err = t.store(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, t.Discard())
	}
	return t.Snapshot, nil
}

// store stores a snapshot that this host takes alone. If several hosts take it, the part is ready
// afterwards, and is stored once it is ready on all hosts.
func (t *capture) store(ctx context.Context) error {
	if t.of.Barrier == nil {
		return t.Store()
	}
	all, err := t.of.Barrier.Went(ctx, t.stood)
	if err != nil {
		return err
	}
	t.Time, t.Pause, t.Skew, t.Hosts = all.Time, all.Pause, all.Skew, all.Hosts
	if err := t.write(); err != nil {
		return err
	}
	return os.Rename(t.Dir, ready(t.of.Dirs, t.Site, t.ID))
}

// A capture is a snapshot that is being taken.
type capture struct {
	*Snapshot
	of      *Options
	copies  []*copyTask
	writers []*spec.Node // running nodes that write to what is copied
	stood   engine.Pause
}

// A copyTask is a tree that is copied to the snapshot.
type copyTask struct {
	whose    string // for messages
	from, to string
	how      *volume.CopyMethod
	copying  *volume.Copying
}

func (o *Options) prepare(ctx context.Context, now time.Time) (*capture, error) {
	if id, nodes, err := Interrupted(o.Dirs, o.Key); err != nil || id != "" {
		return nil, errors.Join(err, interruptedProblem(o.Dirs, o.Key, id, nodes))
	}
	if err := os.MkdirAll(o.Dirs.Snapshots(o.Key), 0o700); err != nil {
		return nil, err
	}
	id := o.ID
	if id == "" {
		id = freeID(o.Dirs.Snapshots(o.Key), NewID(now))
	} else if !ValidID(id) || freeID(o.Dirs.Snapshots(o.Key), id) != id {
		return nil, problem.New(problem.Surprise, "snapshot %q already exists", id)
	}
	t := &capture{of: o, Snapshot: NewEmpty(o.Dirs, o.Key, id)}
	t.Who, t.Scheduled = o.Who, o.Scheduled
	running, err := engine.Running(ctx, o.Engines, o.Key)
	if err != nil {
		return nil, err
	}
	t.Nodes = make([]Node, len(o.Nodes))
	for i, r := range o.Nodes {
		runs := slices.ContainsFunc(running, func(n *spec.Node) bool { return n.ID == r.ID })
		t.Nodes[i] = Node{Record: r, Running: runs}
		if err := t.add(&t.Nodes[i]); err != nil {
			return nil, err
		}
	}
	t.addVolumes()
	t.addWriters(running)
	return t, engine.CheckFreezable(o.Engines, t.writers)
}

// NewID returns the id of a snapshot that is taken now.
func NewID(now time.Time) string { return now.UTC().Format("20060102-150405") }

// freeID returns an id that no snapshot has.
func freeID(dir, id string) string {
	free := id
	for n := 2; ; n++ {
		if _, err := os.Lstat(filepath.Join(dir, free)); err != nil {
			return free
		}
		free = id + "-" + strconv.Itoa(n)
	}
}

// add adds what to copy of a node.
func (t *capture) add(n *Node) error {
	e, ok := t.of.Engines[n.Record.Engine]
	if !ok {
		return problem.New(problem.Unable, "node %s needs the engine %q, which this host does not have", n.Record.Name,
			n.Record.Engine)
	}
	if err := t.addDisks(&n.Record.Node); err != nil {
		return err
	}
	if layered, ok := e.(engine.Layered); ok {
		ref := engine.RefOf(&n.Record.Node)
		t.copies = append(t.copies, &copyTask{whose: "node " + ref.Name, from: layered.Private(ref), to: t.PrivateDir(ref.ID),
			how: &n.How})
	}
	return nil
}

// addDisks adds the disks of a node that are not copied, because they are devices of the host. Disk
// images in files are in the private layer.
func (t *capture) addDisks(n *spec.Node) error {
	for _, d := range n.VM.Drives() {
		switch {
		case !d.IsDevice():
		case d.Name == site.RootDisk:
			return problem.New(problem.Unable,
				"node %s writes to a device of the host, which cannot be copied while it is in use", n.Name).
				At(d.Disk).
				Try("run orrery stop %s and take the snapshot with the volume manager: lvcreate -s %s; or leave the node out",
					n.Name, d.Disk)
		default:
			t.Omitted = append(t.Omitted, fmt.Sprintf("disk %s of %s: %s is a device of the host", d.Name, n.Name, d.Disk))
		}
	}
	return nil
}

// addVolumes adds the volumes of all nodes, each once.
func (t *capture) addVolumes() {
	seen := map[string]bool{}
	for _, n := range t.Nodes {
		for _, m := range n.Record.Mounts {
			path := volume.Path(t.of.Dirs, t.Site, n.Record.Name, m)
			if seen[path] {
				continue
			}
			seen[path] = true
			if why := omitReason(m, path); why != "" {
				t.Omitted = append(t.Omitted, fmt.Sprintf("%s of %s: %s", m.Volume, n.Record.Name, why))
				continue
			}
			v := Volume{Name: m.Volume, Node: n.Record.Name, Path: path}
			if m.Shared {
				v.Node = volume.SharedDir
			}
			t.Volumes = append(t.Volumes, v)
		}
	}
	for i := range t.Volumes {
		v := &t.Volumes[i]
		t.copies = append(t.copies, &copyTask{whose: fmt.Sprintf("volume %s of %s", v.Name, v.Node), from: v.Path,
			to: t.VolumeDir(*v), how: &v.How})
	}
}

// addWriters adds the nodes to freeze: those in the snapshot, and all others that write to one of
// its volumes.
func (t *capture) addWriters(running []*spec.Node) {
	var paths []string
	for _, v := range t.Volumes {
		paths = append(paths, v.Path)
	}
	t.writers = volume.Writers(t.of.Dirs, t.Site, running, paths...)
	for _, n := range running {
		in := slices.ContainsFunc(t.Nodes, func(node Node) bool { return node.Record.ID == n.ID })
		if in && !slices.Contains(t.writers, n) {
			t.writers = append(t.writers, n)
		}
	}
}

// omitReason returns why a volume is not in a snapshot, or "" if it is.
func omitReason(m spec.Mount, path string) string {
	if left := m.From().Left; left != "" && m.Copy == "" {
		return left
	}
	if m.Copy != "" {
		return "it is a copy in quarantine"
	}
	if _, err := os.Stat(path); err != nil {
		return "it has not been used yet"
	}
	return ""
}

// take copies all trees, freezes all nodes, and completes the copies.
func (t *capture) take(ctx context.Context) error {
	err := inParallel(t.copies, func(c *copyTask) (err error) {
		if err := os.MkdirAll(filepath.Dir(c.to), 0o700); err != nil {
			return err
		}
		c.copying, err = volume.StartCopy(ctx, c.from, c.to)
		return c.wrong(err)
	})
	defer t.close()
	if err != nil {
		return err
	}
	letGo := func() {}
	if t.of.Guard != nil && len(t.writers) > 0 {
		if letGo, err = t.of.Guard(t.writers...); err != nil {
			return err
		}
	}
	runtime.GC() // so that it does not run while nodes are frozen
	var at time.Time
	if t.of.Barrier != nil {
		if at, err = t.of.Barrier.Copied(ctx); err != nil {
			letGo()
			return err
		}
	}
	t.stood, err = engine.WhileFrozenAt(ctx, t.of.Engines, t.writers, at, t.copyRest)
	if err == nil {
		letGo() // if WhileFrozenAt failed, the guard resumes the nodes that are still frozen as soon as this process ends
	}
	t.Time, t.Pause, t.Skew = t.stood.At, t.stood.Long.Seconds(), t.stood.Skew.Seconds()
	for _, c := range t.copies {
		*c.how = c.copying.Method
		for _, what := range c.copying.Skipped {
			t.Left = append(t.Left, c.whose+": "+what)
		}
	}
	return err
}

// copyRest copies what has changed, while all nodes are frozen.
func (t *capture) copyRest(ctx context.Context, p engine.Pause) error {
	if t.of.Barrier != nil {
		if err := t.of.Barrier.Stood(ctx, p); err != nil {
			return err
		}
	}
	if err := t.saveMemory(ctx); err != nil {
		return err
	}
	return inParallel(t.copies, func(c *copyTask) error { return c.wrong(c.copying.Finish(ctx)) })
}

// saveMemory stores the memory of nodes if it is wanted. This happens before their files are
// completed, because the nodes may still write for a moment.
func (t *capture) saveMemory(ctx context.Context) error {
	if !t.of.Memory {
		return nil
	}
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if !n.Running {
			continue
		}
		e, ok := t.of.Engines[n.Record.Engine].(engine.MemorySaver)
		if !ok {
			t.Left = append(t.Left, fmt.Sprintf("node %s: its memory, which the engine %s cannot save", n.Record.Name,
				n.Record.Engine))
			continue
		}
		if err := os.MkdirAll(filepath.Dir(t.Snapshot.MemoryPath(n.Record.ID)), 0o700); err != nil {
			return err
		}
		if err := e.SaveMemory(ctx, engine.RefOf(&n.Record.Node), t.Snapshot.MemoryPath(n.Record.ID)); err != nil {
			return err
		}
		n.Memory = true
	}
	return nil
}

func (t *capture) close() {
	for _, c := range t.copies {
		if c.copying != nil {
			c.copying.Close() //nolint:errcheck // what was written is brought to disk when it is kept
		}
	}
}

func (c *copyTask) wrong(err error) error {
	if err == nil {
		return nil
	}
	return volume.CopyProblem(c.from, err)
}

// NewEmpty returns an empty snapshot of a site. Sweep removes its directory unless Store renames it.
func NewEmpty(dirs host.Dirs, key, id string) *Snapshot {
	return &Snapshot{ID: id, Site: key, Dir: filepath.Join(dirs.Snapshots(key), "."+id+"-new")}
}

// Store writes snapshot.json, and gives the snapshot its name once everything is on disk.
func (s *Snapshot) Store() error {
	if s.Time.IsZero() {
		s.Time = time.Now()
	}
	if err := s.write(); err != nil {
		return err
	}
	fresh := s.Dir
	s.Dir = filepath.Join(filepath.Dir(fresh), s.ID)
	return os.Rename(fresh, s.Dir)
}

// write writes snapshot.json, and brings the whole snapshot to disk.
func (s *Snapshot) write() error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.Dir, file), append(text, '\n'), 0o600); err != nil {
		return volume.CopyProblem(s.Dir, err)
	}
	if err := volume.Sync(s.Dir); err != nil {
		return volume.CopyProblem(s.Dir, err)
	}
	return nil
}

// Discard removes a snapshot that was not stored.
func (s *Snapshot) Discard() error { return erase(s.Dir) }

// inParallel calls do for all trees, several at a time.
func inParallel(all []*copyTask, do func(*copyTask) error) error {
	var group errgroup.Group
	group.SetLimit(2 * runtime.NumCPU())
	for _, c := range all {
		group.Go(func() error { return do(c) })
	}
	return group.Wait()
}
