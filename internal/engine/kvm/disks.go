package kvm

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"

	"orrery/internal/engine"
	"orrery/internal/engine/kvm/argv"
	"orrery/internal/engine/kvm/qmp"
	"orrery/internal/engine/nodedir"
	"orrery/internal/engine/vm"
	"orrery/internal/guest/boot"
	"orrery/internal/host"
	"orrery/internal/site"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
)

// openDisks opens the disks of a machine, which QEMU is to be handed.
func (e *Engine) openDisks(open handed, r *nodedir.Record) error {
	for _, drive := range r.VM.Drives() {
		f, err := e.machine(engine.RefOf(&r.Node)).Disk(drive).Open()
		if err != nil {
			return err
		}
		open[argv.DriveFile(drive)] = f
	}
	return nil
}

// A seen is what a guest that keeps what it writes on a disk has been shown of the private layer, in which only the host writes then: by path, when and how long a file is.
type seen map[string]string

// mostSeen bounds it, in files.
const mostSeen = 1 << 14

// tellStack tells such a guest what is newer in its root than on its disk, and what is mounted there. What it is shown now is to be kept when it has started.
func (e *Engine) tellStack(ctx context.Context, r *nodedir.Record) (seen, error) {
	ref := engine.RefOf(&r.Node)
	now, err := survey(ctx, e.Private(ref))
	if err != nil {
		return nil, err
	}
	was, err := host.ReadJSON[seen](filepath.Join(e.machine(ref).Disks(), vm.SeenFile))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	s := boot.Stack{Start: rand.Text(), Fresh: now.after(was)}
	mounts, err := e.Mounts(r)
	if err != nil {
		return nil, err
	}
	for _, m := range mounts {
		s.Binds = append(s.Binds, m.Path)
	}
	return now, vm.Tell(e.Dirs, ref, boot.StackFile, s)
}

// keepSeen keeps what a guest has been shown.
func (e *Engine) keepSeen(ref engine.Ref, now seen) error {
	text, err := json.Marshal(now)
	if err != nil {
		return err
	}
	return host.WriteFile(host.File{Path: filepath.Join(e.machine(ref).Disks(), vm.SeenFile), Content: text, Mode: 0o600})
}

// survey looks through a private layer.
func survey(ctx context.Context, private string) (seen, error) {
	root, err := tree.Open(private)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	all := seen{}
	bounds := tree.Ample
	bounds.All = mostSeen
	err = root.Walk(ctx, bounds, func(e *tree.Entry) error {
		switch {
		case e.Path == vm.Hold:
			return tree.SkipDir
		case !e.IsDir():
			all[e.Path] = fmt.Sprintf("%d.%09d %d %o", e.Stat.Mtim.Sec, e.Stat.Mtim.Nsec, e.Stat.Size, e.Stat.Mode)
		}
		return nil
	})
	return all, err
}

// after returns the paths that are otherwise than they were, in order.
func (s seen) after(was seen) []string {
	var all []string
	for path, how := range s {
		if was[path] != how {
			all = append(all, path)
		}
	}
	slices.Sort(all)
	return all
}

// growImages grows images to their declared size; raw files have it already.
func (m machine) growImages(ctx context.Context, r *nodedir.Record) error {
	images := slices.DeleteFunc(r.VM.Drives(), func(d site.Drive) bool { return d.Disk != site.QCow2 })
	if len(images) == 0 {
		return nil
	}
	q, err := m.monitor(ctx)
	if err != nil {
		return err
	}
	defer q.Close() //nolint:errcheck // all was answered
	for _, d := range images {
		if err := resize(ctx, q, d); err != nil {
			return m.DiskProblem(d, "does not get larger", err)
		}
	}
	return nil
}

func resize(ctx context.Context, q *qmp.Client, d site.Drive) error {
	return q.Do(ctx, "block_resize", map[string]any{"node-name": argv.BlockID(d), "size": d.Size}, nil)
}

// Receive makes a machine, stopped, of what has come of it from another host.
func (e *Engine) Receive(ctx context.Context, n *spec.Node, layer string, m engine.Mark, resumes bool) error {
	if err := vm.TakeDisks(n.Name, layer); err != nil {
		return err
	}
	return e.Nodes.Receive(ctx, n, layer, m, resumes)
}

// leaveDevices lets others have the device on which a node that goes has kept what it wrote. Its other devices keep what they have.
func (e *Engine) leaveDevices(ctx context.Context, m machine) error {
	r, err := m.Read()
	if err != nil {
		return nil // it is half made, or not there
	}
	for _, drive := range r.VM.Drives() {
		if drive.IsDevice() && drive.Name == site.RootDisk {
			return m.Disk(drive).Leave(ctx, m.Disks())
		}
	}
	return nil
}
