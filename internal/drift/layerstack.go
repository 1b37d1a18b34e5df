package drift

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/tree"
)

// A LayerStack contains the layers of a node, the topmost first. It shows them as overlayfs would
// without the node's private layer.
type LayerStack []*tree.Root

// OpenLayers opens the trees of layers, the topmost first.
func OpenLayers(dirs []string) (LayerStack, error) {
	var s LayerStack
	for _, dir := range dirs {
		layer, err := tree.Open(dir)
		if err != nil {
			s.Close()
			return nil, err
		}
		s = append(s, layer)
	}
	return s, nil
}

// Close closes the layers.
func (s LayerStack) Close() {
	for _, layer := range s {
		layer.Close() //nolint:errcheck // it was only read
	}
}

// find returns the topmost layer that contains a path, with the file's status. If ok is false, a
// node without a private layer would see no file there.
func (s LayerStack) find(name string) (layer *tree.Root, st *unix.Stat_t, ok bool, err error) {
	for _, layer := range s {
		st, hides, err := lookup(layer, name)
		if err != nil || st != nil {
			return layer, st, err == nil && !tree.IsWhiteout(st), err
		}
		if hides {
			break
		}
	}
	return nil, nil, false, nil
}

// lookup returns the status of a path in one layer, or nil if there is none. It also reports whether
// the layer hides the path in the layers below.
func lookup(layer *tree.Root, name string) (st *unix.Stat_t, hides bool, err error) {
	parts := strings.Split(name, "/")
	for n := range parts {
		part := strings.Join(parts[:n+1], "/")
		st, err = layer.Lstat(part)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil, hides, nil
		case err != nil || n == len(parts)-1:
			return st, false, err
		case st.Mode&unix.S_IFMT != unix.S_IFDIR: // a parent of the path is not a directory in this layer
			return nil, true, nil
		}
		opaque, err := opaque(layer, part)
		if err != nil {
			return nil, false, err
		}
		hides = hides || opaque
	}
	return nil, hides, nil
}

// names returns the names in a directory of the stack, sorted.
func (s LayerStack) names(dir string) ([]string, error) {
	seen := map[string]bool{} // name to whether it is visible
	for _, layer := range s {
		st, hides, err := lookup(layer, dir)
		if err != nil {
			return nil, err
		}
		if st != nil && st.Mode&unix.S_IFMT == unix.S_IFDIR {
			if hides, err = list(layer, dir, seen); err != nil {
				return nil, err
			}
		}
		if hides || st != nil && st.Mode&unix.S_IFMT != unix.S_IFDIR {
			break
		}
	}
	var all []string
	for name, shown := range seen {
		if shown {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	return all, nil
}

// list adds the names of one layer's directory, and reports whether the directory hides the layers
// below.
func list(layer *tree.Root, dir string, seen map[string]bool) (hides bool, err error) {
	names, err := layer.Names(dir, walkBounds.Names)
	if err != nil {
		return false, err
	}
	for _, name := range names {
		if _, above := seen[name]; above {
			continue
		}
		st, err := layer.Lstat(path.Join(dir, name))
		if err != nil {
			return false, err
		}
		seen[name] = !tree.IsWhiteout(st)
	}
	return opaque(layer, dir)
}

// opaque reports whether a directory of a layer hides the layers below.
func opaque(layer *tree.Root, dir string) (bool, error) {
	inside, err := layer.Sub(dir)
	if err != nil {
		return false, err
	}
	defer inside.Close()
	return opaqueFile(inside.Fd())
}

func opaqueFile(fd int) (bool, error) {
	attrs, err := tree.FileAttributes(fd)
	return string(attrs["trusted.overlay.opaque"]) == "y", err
}

// Restore restores a path of the layers that is missing or altered in a node's tree, and all that
// is missing below it. It keeps other files there. The number first is the host's user id of the
// node's root.
func (s LayerStack) Restore(ctx context.Context, to *tree.Root, first int, name string) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	name = relative(name)
	layer, st, ok, err := s.find(name)
	if err != nil {
		return err
	}
	if !ok {
		return fmt.Errorf("/%s is missing from all layers of the node", tree.DisplayPath(name))
	}
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return s.restoreDirectory(ctx, to, first, name, st)
	case unix.S_IFLNK:
		says, err := layer.Readlink(name)
		if err != nil {
			return err
		}
		return to.Put(tree.File{Path: name, Link: says, Uid: first + int(st.Uid), Gid: first + int(st.Gid)}, first, first)
	case unix.S_IFREG:
		return restoreFile(ctx, to, first, layer, name, st)
	}
	return nil // a pipe or a device has no content to restore
}

func (s LayerStack) restoreDirectory(ctx context.Context, to *tree.Root, first int, name string,
	st *unix.Stat_t) error {
	if err := to.MkdirAll(name, first+int(st.Uid), first+int(st.Gid)); err != nil {
		return err
	}
	if err := to.SetOwnerMode(name, first+int(st.Uid), first+int(st.Gid), st.Mode&0o7777); err != nil {
		return err
	}
	inside, err := s.names(name)
	if err != nil {
		return err
	}
	for _, each := range inside {
		each = path.Join(name, each)
		if _, err := to.Lstat(each); !errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err := s.Restore(ctx, to, first, each); err != nil {
			return err
		}
	}
	return nil
}

func restoreFile(ctx context.Context, to *tree.Root, first int, layer *tree.Root, name string, st *unix.Stat_t) error {
	from, err := layer.OpenFile(name)
	if err != nil {
		return err
	}
	defer from.Close()
	all, err := tree.FileAttributes(int(from.Fd()))
	if err != nil {
		return err
	}
	attrs := map[string][]byte{}
	if value, ok := all["security.capability"]; ok {
		attrs["security.capability"] = value
	}
	fill := func(file *os.File) error {
		_, err := io.Copy(file, contextReader{ctx, from})
		return err
	}
	return to.Put(tree.File{
		Path: name, Fill: fill, Uid: first + int(st.Uid), Gid: first + int(st.Gid), Mode: st.Mode & 0o7777, Attrs: attrs,
		Modified: time.Unix(st.Mtim.Unix()),
	}, first, first)
}

// contextReader reads until ctx ends.
type contextReader struct {
	ctx  context.Context
	from io.Reader
}

func (r contextReader) Read(p []byte) (int, error) {
	if r.ctx.Err() != nil {
		return 0, context.Cause(r.ctx)
	}
	return r.from.Read(p)
}

// relative returns a path relative to the root of a tree.
func relative(name string) string { return strings.TrimPrefix(path.Clean("/"+name), "/") }
