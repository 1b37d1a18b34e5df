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

// Options say of what a snapshot is taken. Whoever takes one holds the lock of the site and has
// swept its engines.
type Options struct {
	Dirs    host.Dirs
	Key     string // of the site
	Engines map[string]engine.Engine
	Nodes   []*nodedir.Record
	Who     string
	Memory  bool   // also what those have in memory that run and whose engine can keep it
	ID      string // "": one by the time
	Pace    Pace   // of all hosts that take the snapshot together; nil: this one takes it alone
	// Guard, if set, sees to it that nodes go on that stand still when this process is killed, until it is let go.
	Guard func(nodes ...*spec.Node) (letGo func(), err error)
}

// Take takes a snapshot: most is copied while the nodes run; then all stand still at once, what has
// changed meanwhile is copied, and they go on. However it ends, no node stays frozen but one whose
// engine cannot thaw it, and that is said.
func Take(ctx context.Context, o Options) (*Snapshot, error) {
	began := time.Now()
	t, err := o.prepare(ctx, began)
	if err != nil {
		return nil, err
	}
	err = t.take(ctx)
	if err == nil {
		t.Seconds = time.Since(began).Seconds()
		err = t.keep(ctx)
	}
	if err != nil {
		return nil, errors.Join(err, t.Drop())
	}
	return t.Snapshot, nil
}

// keep keeps a snapshot that is taken alone. One that is taken together is ready then, and kept
// when all hosts have got that far.
func (t *capture) keep(ctx context.Context) error {
	if t.of.Pace == nil {
		return t.Keep()
	}
	all, err := t.of.Pace.Went(ctx, t.stood)
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
	copies  []*toCopy
	writers []*spec.Node // running nodes that write into what is copied
	stood   engine.Pause
}

// A toCopy is a tree that goes into the snapshot.
type toCopy struct {
	whose    string // for messages
	from, to string
	how      *volume.How
	copying  *volume.Copying
}

func (o *Options) prepare(ctx context.Context, now time.Time) (*capture, error) {
	if id, nodes, err := Unfinished(o.Dirs, o.Key); err != nil || id != "" {
		return nil, errors.Join(err, cutShort(o.Dirs, o.Key, id, nodes))
	}
	if err := os.MkdirAll(o.Dirs.Snapshots(o.Key), 0o700); err != nil {
		return nil, err
	}
	id := o.ID
	if id == "" {
		id = freeID(o.Dirs.Snapshots(o.Key), NewID(now))
	} else if !FitID(id) || freeID(o.Dirs.Snapshots(o.Key), id) != id {
		return nil, problem.New(problem.Surprise, "there is a snapshot %q already", id)
	}
	t := &capture{of: o, Snapshot: Fresh(o.Dirs, o.Key, id)}
	t.Who = o.Who
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
	return t, engine.MayStandStill(o.Engines, t.writers)
}

// NewID returns the name of a snapshot that is taken now.
func NewID(now time.Time) string { return now.UTC().Format("20060102-150405") }

// freeID returns a name that no snapshot has.
func freeID(dir, id string) string {
	free := id
	for n := 2; ; n++ {
		if _, err := os.Lstat(filepath.Join(dir, free)); err != nil {
			return free
		}
		free = id + "-" + strconv.Itoa(n)
	}
}

// add notes what of a node is copied.
func (t *capture) add(n *Node) error {
	e, ok := t.of.Engines[n.Record.Engine]
	if !ok {
		return problem.New(problem.Unable, "node %s is of the engine %q, which this host does not have", n.Record.Name,
			n.Record.Engine)
	}
	if err := t.addDisks(&n.Record.Node); err != nil {
		return err
	}
	if layered, ok := e.(engine.Layered); ok {
		ref := engine.RefOf(&n.Record.Node)
		t.copies = append(t.copies, &toCopy{whose: "node " + ref.Name, from: layered.Private(ref), to: t.Private(ref.ID),
			how: &n.How})
	}
	return nil
}

// addDisks says which disks of a node are not in what is copied: devices of the host. Files are in
// its private layer.
func (t *capture) addDisks(n *spec.Node) error {
	for _, d := range n.VM.Drives() {
		switch {
		case !d.IsDevice():
		case d.Name == site.RootDisk:
			return problem.New(problem.Unable,
				"node %s keeps what it writes on a device of the host, which cannot be copied while others write", n.Name).
				At(d.Disk).
				Try("orrery stop %s, and let the volume manager take the snapshot: lvcreate -s %s; or leave the node out", n.Name,
					d.Disk)
		default:
			t.Omitted = append(t.Omitted, fmt.Sprintf("disk %s of %s: it is %s, a device of the host", d.Name, n.Name, d.Disk))
		}
	}
	return nil
}

// addVolumes notes the volumes of all nodes, each once.
func (t *capture) addVolumes() {
	seen := map[string]bool{}
	for _, n := range t.Nodes {
		for _, m := range n.Record.Mounts {
			path := volume.Path(t.of.Dirs, t.Site, n.Record.Name, m)
			if seen[path] {
				continue
			}
			seen[path] = true
			if why := omit(m, path); why != "" {
				t.Omitted = append(t.Omitted, fmt.Sprintf("%s of %s: %s", m.Volume, n.Record.Name, why))
				continue
			}
			v := Volume{Name: m.Volume, Node: n.Record.Name, Path: path}
			if m.Shared {
				v.Node = volume.ForAll
			}
			t.Volumes = append(t.Volumes, v)
		}
	}
	for i := range t.Volumes {
		v := &t.Volumes[i]
		t.copies = append(t.copies, &toCopy{whose: fmt.Sprintf("volume %s of %s", v.Name, v.Node), from: v.Path,
			to: t.Kept(*v), how: &v.How})
	}
}

// addWriters notes who must stand still: the nodes that are in the snapshot, and all others that
// write into a volume that is.
func (t *capture) addWriters(running []*spec.Node) {
	var paths []string
	for _, v := range t.Volumes {
		paths = append(paths, v.Path)
	}
	t.writers = volume.Users(t.of.Dirs, t.Site, running, paths...)
	for _, n := range running {
		in := slices.ContainsFunc(t.Nodes, func(node Node) bool { return node.Record.ID == n.ID })
		if in && !slices.Contains(t.writers, n) {
			t.writers = append(t.writers, n)
		}
	}
}

// omit says why a volume is not in a snapshot.
func omit(m spec.Mount, path string) string {
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

// take copies, lets all nodes stand still, and completes the copies.
func (t *capture) take(ctx context.Context) error {
	err := inParallel(t.copies, func(c *toCopy) (err error) {
		if err := os.MkdirAll(filepath.Dir(c.to), 0o700); err != nil {
			return err
		}
		c.copying, err = volume.Begin(ctx, c.from, c.to)
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
	runtime.GC() // not while nodes stand still
	var at time.Time
	if t.of.Pace != nil {
		if at, err = t.of.Pace.Copied(ctx); err != nil {
			letGo()
			return err
		}
	}
	t.stood, err = engine.StillAt(ctx, t.of.Engines, t.writers, at, t.rest)
	if err == nil {
		letGo() // else it lets go on whoever does not, as soon as we end
	}
	t.Time, t.Pause, t.Skew = t.stood.At, t.stood.Long.Seconds(), t.stood.Skew.Seconds()
	for _, c := range t.copies {
		*c.how = c.copying.How
		for _, what := range c.copying.Left {
			t.Left = append(t.Left, c.whose+": "+what)
		}
	}
	return err
}

// rest copies what has changed, while all nodes stand still.
func (t *capture) rest(ctx context.Context, p engine.Pause) error {
	if t.of.Pace != nil {
		if err := t.of.Pace.Stood(ctx, p); err != nil {
			return err
		}
	}
	if err := t.remember(ctx); err != nil {
		return err
	}
	return inParallel(t.copies, func(c *toCopy) error { return c.wrong(c.copying.Finish(ctx)) })
}

// remember keeps what nodes have in memory, if it is wanted, before the last of their files: they
// may still write for a moment.
func (t *capture) remember(ctx context.Context) error {
	if !t.of.Memory {
		return nil
	}
	for i := range t.Nodes {
		n := &t.Nodes[i]
		if !n.Running {
			continue
		}
		e, ok := t.of.Engines[n.Record.Engine].(engine.Rememberer)
		if !ok {
			t.Left = append(t.Left, fmt.Sprintf("node %s: its memory, which the engine %s cannot keep", n.Record.Name,
				n.Record.Engine))
			continue
		}
		if err := os.MkdirAll(filepath.Dir(t.Snapshot.Memory(n.Record.ID)), 0o700); err != nil {
			return err
		}
		if err := e.Remember(ctx, engine.RefOf(&n.Record.Node), t.Snapshot.Memory(n.Record.ID)); err != nil {
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

func (c *toCopy) wrong(err error) error {
	if err == nil {
		return nil
	}
	return volume.Uncopied(c.from, err)
}

// Fresh returns an empty snapshot of a site. Its Dir is swept away unless Keep moves it to its place.
func Fresh(dirs host.Dirs, key, id string) *Snapshot {
	return &Snapshot{ID: id, Site: key, Dir: filepath.Join(dirs.Snapshots(key), "."+id+"-new")}
}

// Keep writes down what the snapshot is, and gives it its name once all is on disk.
func (s *Snapshot) Keep() error {
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

// write writes down what the snapshot is, and brings all of it to disk.
func (s *Snapshot) write() error {
	text, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(s.Dir, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(s.Dir, file), append(text, '\n'), 0o600); err != nil {
		return volume.Uncopied(s.Dir, err)
	}
	if err := volume.Sync(s.Dir); err != nil {
		return volume.Uncopied(s.Dir, err)
	}
	return nil
}

// Drop removes a snapshot that was not kept.
func (s *Snapshot) Drop() error { return erase(s.Dir) }

// inParallel does something with all trees, a few at a time.
func inParallel(all []*toCopy, do func(*toCopy) error) error {
	var group errgroup.Group
	group.SetLimit(2 * runtime.NumCPU())
	for _, c := range all {
		group.Go(func() error { return do(c) })
	}
	return group.Wait()
}
