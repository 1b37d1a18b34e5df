package snapshot

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"orrery/internal/engine"
	"orrery/internal/engine/record"
	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
	"orrery/internal/volume"
)

// Options say of what a snapshot is taken. Whoever takes one holds the lock of the site and has swept its engines.
type Options struct {
	Dirs    host.Dirs
	Key     string // of the site
	Engines map[string]engine.Engine
	Nodes   []*record.Record
	Who     string
}

// Take takes a snapshot: most is copied while the nodes run; then all stand still at once, what has changed meanwhile is
// copied, and they go on. However it ends, no node stays frozen but one whose engine cannot thaw it, and that is said.
func Take(ctx context.Context, o Options) (*Snapshot, error) {
	began := time.Now()
	t, err := o.prepare(ctx, began)
	if err != nil {
		return nil, err
	}
	err = t.take(ctx)
	if err == nil {
		t.Seconds = time.Since(began).Seconds()
		err = t.keep()
	}
	if err != nil {
		return nil, errors.Join(err, erase(t.fresh))
	}
	return &t.Snapshot, nil
}

// A taking is a snapshot that is being taken.
type taking struct {
	Snapshot
	engines map[string]engine.Engine
	fresh   string
	copies  []*toCopy
	frozen  []engine.Ref // nodes that are to stand still, with
	by      []engine.Freezer
}

// A toCopy is a tree that goes into the snapshot.
type toCopy struct {
	from, to string
	how      *volume.How
	copying  *volume.Copying
}

func (o *Options) prepare(ctx context.Context, now time.Time) (*taking, error) {
	if id, nodes, err := Unfinished(o.Dirs, o.Key); err != nil || id != "" {
		return nil, errors.Join(err, cutShort(o.Dirs, o.Key, id, nodes))
	}
	if err := sweep(o.Dirs, o.Key); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(o.Dirs.Snapshots(o.Key), 0o700); err != nil {
		return nil, err
	}
	id := freeID(o.Dirs.Snapshots(o.Key), now.UTC().Format("20060102-150405"))
	t := &taking{engines: o.Engines, fresh: filepath.Join(o.Dirs.Snapshots(o.Key), "."+id+"-new")}
	t.ID, t.Site, t.Who = id, o.Key, o.Who
	t.Dir = t.fresh
	running, err := o.running(ctx)
	if err != nil {
		return nil, err
	}
	t.Nodes = make([]Node, len(o.Nodes))
	for i, r := range o.Nodes {
		t.Nodes[i] = Node{Record: r, Running: running[r.ID]}
		if err := t.add(&t.Nodes[i]); err != nil {
			return nil, err
		}
	}
	t.addVolumes(o.Dirs)
	return t, nil
}

// freeID gives a name that no snapshot has.
func freeID(dir, id string) string {
	free := id
	for n := 2; ; n++ {
		if _, err := os.Lstat(filepath.Join(dir, free)); err != nil {
			return free
		}
		free = id + "-" + strconv.Itoa(n)
	}
}

func (o *Options) running(ctx context.Context) (map[int]bool, error) {
	is := map[int]bool{}
	for _, e := range o.Engines {
		nodes, err := e.List(ctx, o.Key)
		if err != nil {
			return nil, err
		}
		for _, n := range nodes {
			is[n.ID] = n.State == observe.Running || n.State == observe.Frozen
		}
	}
	return is, nil
}

// add notes what a node has to freeze and to copy.
func (t *taking) add(n *Node) error {
	e, ok := t.engines[n.Record.Engine]
	if !ok {
		return problem.New(problem.Unable, "node %s is of the engine %q, which this host does not have", n.Record.Name, n.Record.Engine)
	}
	ref := engine.RefOf(&n.Record.Node)
	if n.Running {
		freezer, ok := e.(engine.Freezer)
		if !ok {
			return problem.New(problem.Unable, "node %s runs, and its engine %s cannot let it stand still", n.Record.Name, n.Record.Engine).
				Try("orrery stop %s, then take the snapshot", n.Record.Name)
		}
		t.frozen, t.by = append(t.frozen, ref), append(t.by, freezer)
	}
	if layered, ok := e.(engine.Layered); ok {
		t.copies = append(t.copies, &toCopy{from: layered.Private(ref), to: t.Private(ref.ID), how: &n.How})
	}
	return nil
}

// addVolumes notes the volumes of all nodes, each once.
func (t *taking) addVolumes(dirs host.Dirs) {
	seen := map[string]bool{}
	for _, n := range t.Nodes {
		for _, m := range n.Record.Mounts {
			path := volume.Path(dirs, t.Site, n.Record.Name, m)
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
		t.copies = append(t.copies, &toCopy{from: v.Path, to: t.Kept(*v), how: &v.How})
	}
}

// omit says why a volume is not in a snapshot.
func omit(m spec.Mount, path string) string {
	if m.NFS != "" && m.Copy == "" {
		return "it is on an NFS server"
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
func (t *taking) take(ctx context.Context) error {
	err := inParallel(t.copies, func(c *toCopy) (err error) {
		if err := os.MkdirAll(filepath.Dir(c.to), 0o700); err != nil {
			return err
		}
		if c.copying, err = volume.Begin(ctx, c.from, c.to); err == nil {
			*c.how = c.copying.How
		}
		return copyProblem(c, err)
	})
	if err != nil {
		return err
	}
	runtime.GC() // not while nodes stand still
	began := time.Now()
	err = t.freeze(ctx)
	if err == nil {
		t.Time = time.Now()
		err = inParallel(t.copies, func(c *toCopy) error { return copyProblem(c, c.copying.Finish(ctx)) })
	}
	err = errors.Join(err, t.thaw(context.WithoutCancel(ctx)))
	if len(t.frozen) > 0 {
		t.Pause = time.Since(began).Seconds()
	}
	return err
}

func copyProblem(c *toCopy, err error) error {
	if err == nil {
		return nil
	}
	return problem.New(problem.Failed, "no copy of it can be made").At(c.from).Because(err)
}

// freeze lets all nodes stand still and measures how far apart the moments are at which they do.
func (t *taking) freeze(ctx context.Context) error {
	still := make([]time.Time, len(t.frozen))
	var all errgroup.Group
	for i, ref := range t.frozen {
		all.Go(func() error {
			err := t.by[i].Freeze(ctx, ref)
			still[i] = time.Now()
			return err
		})
	}
	err := all.Wait()
	if len(still) > 0 {
		first, last := still[0], still[0]
		for _, at := range still {
			if at.Before(first) {
				first = at
			}
			if at.After(last) {
				last = at
			}
		}
		t.Skew = last.Sub(first).Seconds()
	}
	return err
}

// thaw lets all nodes go on, whatever becomes of the others.
func (t *taking) thaw(ctx context.Context) error {
	errs := make([]error, len(t.frozen))
	var all errgroup.Group
	for i, ref := range t.frozen {
		all.Go(func() error {
			if err := t.by[i].Thaw(ctx, ref); err != nil {
				errs[i] = problem.New(problem.Left, "node %s still stands still", ref.Name).Because(err).
					Try("every orrery command that changes the site lets it go on first, for instance orrery up")
			}
			return nil
		})
	}
	_ = all.Wait()
	return errors.Join(errs...)
}

// keep writes down what the snapshot is, and gives it its name once all is on disk.
func (t *taking) keep() error {
	if t.Time.IsZero() {
		t.Time = time.Now()
	}
	text, err := json.MarshalIndent(&t.Snapshot, "", "  ")
	if err != nil {
		return err
	}
	if err := os.MkdirAll(t.fresh, 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(t.fresh, file), append(text, '\n'), 0o600); err != nil {
		return err
	}
	if err := volume.Sync(t.fresh); err != nil {
		return err
	}
	t.Dir = filepath.Join(filepath.Dir(t.fresh), t.ID)
	return os.Rename(t.fresh, t.Dir)
}

// inParallel does something with all trees, a few at a time.
func inParallel(all []*toCopy, do func(*toCopy) error) error {
	var group errgroup.Group
	group.SetLimit(2 * runtime.NumCPU())
	for _, c := range all {
		group.Go(func() error { return do(c) })
	}
	return group.Wait()
}
