package fake

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/image"
	"orrery/internal/image/imported"
	"orrery/internal/observe"
	"orrery/internal/site"
	"orrery/internal/site/distro"
	"orrery/internal/site/spec"
	"orrery/internal/treesync"
	"orrery/internal/treesync/chunks"
	volumes "orrery/internal/volume"
)

// Layers are the layers in the store of a host in memory. They are names without trees. Dir stores
// the logs of their builds.
type Layers struct {
	h   *Host
	Dir string
}

// Layers returns the layers in the store of the host.
func (h *Host) Layers(dir string) Layers { return Layers{h, dir} }

// Layers returns the digests of the layers in the store.
func (l Layers) Layers() (map[string]bool, error) {
	l.h.lock.Lock()
	defer l.h.lock.Unlock()
	return maps.Clone(l.h.layers), nil
}

// Add adds layers that were not built.
func (l Layers) Add(layers map[string]bool) {
	l.h.lock.Lock()
	defer l.h.lock.Unlock()
	maps.Copy(l.h.layers, layers)
}

// BuildBase builds a base image.
func (l Layers) BuildBase(ctx context.Context, layer *spec.Layer, _ site.Mirror, _ func(string)) error {
	if content := layer.Image.ContentDigest(); content != "" && !filepath.IsAbs(layer.Image.SourceFile()) {
		l.h.lock.Lock()
		ok := l.h.files[content]
		delete(l.h.files, content)
		l.h.lock.Unlock()
		if !ok {
			return fmt.Errorf("layer %s: file %s is missing", layer.Title, layer.Image.Import)
		}
	}
	return l.build(ctx, layer)
}

// BuildLayer builds a role layer on the layers below it. It is empty.
func (l Layers) BuildLayer(ctx context.Context, layer *spec.Layer, _ site.Mirror,
	_ func(context.Context, host.Runner) error, _ func(string)) error {
	return l.build(ctx, layer)
}

func (l Layers) build(ctx context.Context, layer *spec.Layer) error {
	what := l.h.begin(ctx, "build", layer.Title)
	if what.err != nil {
		return what.err
	}
	halfway := what.halfway(ctx)
	l.h.lock.Lock()
	defer l.h.lock.Unlock()
	for _, digest := range layer.Lower() {
		if !l.h.layers[digest] {
			return fmt.Errorf("layer %s: layer %s below it is missing", layer.Title, digest)
		}
	}
	if halfway == nil { // a layer is complete or missing
		l.h.layers[layer.Digest] = true
	}
	return halfway
}

// Receive receives a file and records that.
func (l Layers) Receive(ctx context.Context, digest string, rw io.ReadWriter) error {
	dir, err := os.MkdirTemp("", "orrery-fake-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir) //nolint:errcheck // it is of a test
	_, came, err := imported.Receive(ctx, treesync.Receiver{Dir: filepath.Join(dir, "import")}, digest, rw)
	if err != nil {
		return err
	}
	if came != digest {
		return fmt.Errorf("received %s instead of %s", came, digest)
	}
	l.h.lock.Lock()
	defer l.h.lock.Unlock()
	if l.h.files == nil {
		l.h.files = map[string]bool{}
	}
	l.h.files[digest] = true
	return nil
}

// OpenLog opens the log of a layer's build.
func (l Layers) OpenLog(digest string) (*host.Log, error) {
	return host.OpenLog(filepath.Join(l.Dir, digest+".log"), 0o600)
}

// Record returns fs.ErrNotExist, because nothing is recorded of a layer.
func (Layers) Record(string) (*image.Record, error) { return nil, fs.ErrNotExist }

// Tree returns the path where a layer's tree would be.
func (l Layers) Tree(digest string) string { return filepath.Join(l.Dir, digest) }

// Took returns 0, because the duration of a build is unknown.
func (Layers) Took(string) time.Duration { return 0 }

// ContentInfo returns the same content digest for all layers in the store, or fs.ErrNotExist.
func (l Layers) ContentInfo(digest string) (image.ContentInfo, error) {
	if all, _ := l.Layers(); !all[digest] {
		return image.ContentInfo{}, fs.ErrNotExist
	}
	return image.ContentInfo{Content: "c0de"}, nil
}

// Serve sends whether the store has the layer.
func (l Layers) Serve(_ context.Context, digest string, c io.ReadWriter) error {
	answer := "no"
	if _, err := l.ContentInfo(digest); err == nil {
		answer = "so"
	}
	_, err := io.WriteString(c, answer)
	return err
}

// Download adds the layer to the store if one of the other hosts answers that it has the layer.
func (l Layers) Download(ctx context.Context, layer *spec.Layer, _ string, from []chunks.Source, _,
	doubt func(string)) error {
	what := l.h.begin(ctx, "fetch", layer.Title)
	if what.err != nil {
		return what.err
	}
	if err := what.halfway(ctx); err != nil {
		return err
	}
	for _, s := range from {
		c, err := s.Open(ctx)
		if err != nil {
			doubt(err.Error())
			continue
		}
		answer := make([]byte, 2)
		_, err = io.ReadFull(c, answer)
		_ = c.Close()
		if err == nil && string(answer) == "so" {
			l.h.lock.Lock()
			defer l.h.lock.Unlock()
			l.h.layers[layer.Digest] = true
			return nil
		}
	}
	return fmt.Errorf("layer %s: no host has it", layer.Title)
}

// Sweep does nothing.
func (Layers) Sweep() error { return nil }

// Packages are the packages of layers in memory, of which there are none.
type Packages struct{}

// Install does nothing.
func (Packages) Install(context.Context, host.Runner, *distro.Distribution, []string, io.Writer) error {
	return nil
}

// FillKernel does nothing.
func (Packages) FillKernel(context.Context, host.Runner, *spec.Layer, io.Writer) error { return nil }

// Volumes are the volumes of the nodes of a host in memory.
type Volumes struct{ h *Host }

// Volumes returns the volumes of the host's nodes.
func (h *Host) Volumes() Volumes { return Volumes{h} }

// List returns the volumes of a site.
func (v Volumes) List(key string) ([]observe.Volume, error) {
	v.h.mu.Lock()
	defer v.h.mu.Unlock()
	var all []observe.Volume
	for of := range v.h.volumes {
		if of.site == key && of.copy == 0 {
			all = append(all, observe.Volume{Name: of.name, Node: of.node, Path: of.path()})
		}
	}
	slices.SortFunc(all, func(a, b observe.Volume) int { return cmp.Compare(a.Path, b.Path) })
	return all, nil
}

// Provide does nothing: the engine makes the volumes of nodes.
func (Volumes) Provide(context.Context, *spec.Node, spec.Mount, volumes.NodeRoot) error { return nil }

// ProvideCopy does nothing, because the engine makes the copies of volumes.
func (Volumes) ProvideCopy(context.Context, *spec.Node, spec.Mount, volumes.NodeRoot,
	volumes.FreezeFunc) (volumes.CopyResult,
	error) {
	return volumes.CopyResult{}, nil
}

// Erase removes a volume.
func (v Volumes) Erase(path string) error {
	what := v.h.begin(context.Background(), "unvolume", path)
	if what.err != nil {
		return what.err
	}
	if err := what.halfway(context.Background()); err != nil {
		return err
	}
	v.h.mu.Lock()
	defer v.h.mu.Unlock()
	maps.DeleteFunc(v.h.volumes, func(of volume, _ tree) bool { return of.copy == 0 && of.path() == path })
	return nil
}

// Drop removes a node's copy of a volume.
func (v Volumes) Drop(n *spec.Node, m spec.Mount) error {
	v.h.mu.Lock()
	defer v.h.mu.Unlock()
	if of := volumeOf(n, m); of.copy != 0 {
		delete(v.h.volumes, of)
	}
	return nil
}

// DropCopies removes the copies of volumes that were made for a release. It returns an error if a
// node of the release exists.
func (v Volumes) DropCopies(key string, release int) error {
	v.h.mu.Lock()
	defer v.h.mu.Unlock()
	for _, n := range v.h.nodes {
		if n.spec.Site == key && n.spec.Release == release {
			return fmt.Errorf("release %d is deleted, but node %s belongs to it", release, n.spec.Name)
		}
	}
	maps.DeleteFunc(v.h.volumes, func(of volume, _ tree) bool { return of.site == key && of.copy == release })
	return nil
}

// Sweep does nothing.
func (Volumes) Sweep(string) error { return nil }

// Release does nothing.
func (Volumes) Release() error { return nil }

// Kernel has the kernel settings of a host in memory.
type Kernel struct{ h *Host }

// Kernel returns the kernel settings of the host.
func (h *Host) Kernel() Kernel { return Kernel{h} }

// Settings returns all settings.
func (k Kernel) Settings([]string) map[string]string {
	k.h.lock.Lock()
	defer k.h.lock.Unlock()
	return maps.Clone(k.h.settings)
}

// Prepare changes settings.
func (k Kernel) Prepare(ctx context.Context, settings map[string]string) error {
	return k.change(ctx, "prepare", func() {
		if k.h.former == nil {
			k.h.former = maps.Clone(k.h.settings)
		}
		maps.Copy(k.h.settings, settings)
	})
}

// Restore restores the settings from before Prepare.
func (k Kernel) Restore(ctx context.Context) error {
	return k.change(ctx, "restore", func() {
		if k.h.former != nil {
			k.h.settings, k.h.former = k.h.former, nil
		}
	})
}

func (k Kernel) change(ctx context.Context, method string, do func()) error {
	what := k.h.begin(ctx, method, k.h.Name)
	if what.err != nil {
		return what.err
	}
	if err := what.halfway(context.Background()); err != nil {
		return err
	}
	k.h.lock.Lock()
	defer k.h.lock.Unlock()
	do()
	return nil
}

// Records are the records of the nodes of a host in memory.
type Records struct{ h *Host }

// Records returns the records of the host's nodes.
func (h *Host) Records() Records { return Records{h} }

// Read returns the record of a node that is not Broken.
func (r Records) Read(key string, id int) (*nodedir.Record, error) {
	all, err := r.All(key)
	if err != nil {
		return nil, err
	}
	for _, f := range all {
		if f.ID == id && f.Whole {
			return f.Record, nil
		}
	}
	return nil, fs.ErrNotExist
}

// All returns the records of all nodes of a site.
func (r Records) All(key string) ([]nodedir.Found, error) {
	nodes, err := r.h.List(context.Background(), key)
	if err != nil {
		return nil, err
	}
	var all []nodedir.Found
	for _, n := range nodes {
		all = append(all, nodedir.Found{
			Record: &nodedir.Record{Node: n.Node, Configured: n.Configured, Proven: n.Proven, ProvenAt: n.ProvenAt,
				Active: n.Active},
			Whole: n.State != observe.Broken,
		})
	}
	return all, nil
}
