package drift

import (
	"bytes"
	"context"
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/observe"
	"orrery/internal/tree"
)

// programDirs are the directories that a node should not change: their content came with packages, pip
// and build steps. Other directories (/etc, /var, /root, /home) also belong to the node.
var programDirs = []string{"usr", "opt"}

// Programs returns what a node has deleted or changed of the programs in its layers, except free
// paths. It ignores what the node has added.
func Programs(ctx context.Context, node string, private *tree.Root, layers LayerStack,
	free IgnoreList) ([]observe.Drift, error) {
	w := &walk{collector: collector{node: node}, ctx: ctx, layers: layers, free: free}
	for _, top := range programDirs {
		inside, err := private.Sub(top)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
			if err := w.checkReplacement(private, top); err != nil {
				return nil, err
			}
			continue
		}
		if err != nil {
			return nil, err
		}
		w.top = top
		err = inside.Walk(ctx, walkBounds, w.visit)
		inside.Close() //nolint:errcheck // it was only read
		if err != nil && !errors.Is(err, errFull) {
			return nil, err
		}
	}
	return w.all, nil
}

var errFull = errors.New("enough has been found")

type walk struct {
	collector
	ctx    context.Context
	layers LayerStack
	free   IgnoreList
	top    string
}

// checkReplacement checks what the private layer contains in place of a whole directory of programs.
func (w *walk) checkReplacement(private *tree.Root, top string) error {
	st, err := private.Lstat(top)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil {
		_, _, ok, err := w.layers.find(top)
		if err != nil {
			return err
		}
		if ok {
			w.addReplaced(top, st)
		}
	}
	return err
}

func (w *walk) visit(e *tree.Entry) error {
	name := path.Join(w.top, e.Path)
	switch {
	case w.full():
		return errFull
	case w.free.has(name), e.Name == "__pycache__", strings.HasSuffix(e.Name, ".pyc"): // Python writes these
		return tree.SkipDir
	}
	layer, original, ok, err := w.layers.find(name)
	switch {
	case err != nil:
		return err
	case !ok && e.IsDir():
		return tree.SkipDir // the node has created it, with all its content
	case !ok:
		return nil
	case e.Stat.Mode&unix.S_IFMT != original.Mode&unix.S_IFMT:
		w.addReplaced(name, &e.Stat)
		return tree.SkipDir
	}
	if want, found := compareAttributes(original, &e.Stat, 0); found != "" {
		w.add(observe.DriftProgram, observe.Altered, "/"+name, "", want, found)
		return nil
	}
	same, err := true, error(nil)
	switch original.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		return w.addMissing(e, name)
	case unix.S_IFREG:
		same, err = sameContent(w.ctx, layer, name, original, func() (*os.File, int64, error) {
			fd, st, err := tree.OpenEntry(e.Dir, e.Name)
			return os.NewFile(uintptr(fd), name), st.Size, err
		})
	case unix.S_IFLNK:
		same, err = sameLink(layer, name, func() (string, error) { return tree.ReadLink(e.Dir, e.Name) })
	}
	if err == nil && !same {
		w.add(observe.DriftProgram, observe.Altered, "/"+name, "", asLayer, changed)
	}
	return tree.IgnoreGone(err)
}

const (
	asLayer = "as in its layer"
	changed = "changed"
	gone    = "gone"
)

// addReplaced reports a file of another kind in place of one in a layer, or a deleted file if it is a
// whiteout of overlayfs.
func (w *walk) addReplaced(name string, st *unix.Stat_t) {
	if tree.IsWhiteout(st) {
		w.add(observe.DriftProgram, observe.Gone, "/"+name, "", asLayer, gone)
		return
	}
	w.add(observe.DriftProgram, observe.Altered, "/"+name, "", asLayer, tree.Kind(st.Mode))
}

// addMissing reports what is missing in a directory that was deleted and created again.
func (w *walk) addMissing(e *tree.Entry, name string) error {
	fresh, err := opaqueFile(e.Inner)
	if err != nil || !fresh {
		return err
	}
	all, err := w.layers.names(name)
	if err != nil {
		return err
	}
	for _, each := range all {
		if _, err := tree.StatEntry(e.Inner, each); errors.Is(err, unix.ENOENT) && !w.free.has(path.Join(name, each)) {
			w.add(observe.DriftProgram, observe.Gone, "/"+path.Join(name, each), "", asLayer, gone)
		}
	}
	return nil
}

// sameContent compares a file of a layer with another file, which open returns with its size.
func sameContent(ctx context.Context, layer *tree.Root, name string, original *unix.Stat_t,
	open func() (*os.File, int64, error)) (bool, error) {
	other, size, err := open()
	if err != nil {
		return false, err
	}
	defer other.Close()
	if size != original.Size {
		return false, nil
	}
	file, err := layer.OpenFile(name)
	if err != nil {
		return false, err
	}
	defer file.Close()
	return sameBytes(contextReader{ctx, io.LimitReader(file, size)}, io.LimitReader(other, size+1))
}

func sameBytes(a, b io.Reader) (bool, error) {
	one, other := make([]byte, 64<<10), make([]byte, 64<<10)
	for {
		n, err := io.ReadFull(a, one)
		m, wrong := io.ReadFull(b, other)
		if !bytes.Equal(one[:n], other[:m]) {
			return false, nil
		}
		for _, err := range []error{err, wrong} {
			if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
				return false, err
			}
		}
		if err != nil || wrong != nil {
			return err != nil && wrong != nil, nil
		}
	}
}

func sameLink(layer *tree.Root, name string, read func() (string, error)) (bool, error) {
	original, err := layer.Readlink(name)
	if err != nil {
		return false, err
	}
	current, err := read()
	return original == current, err
}

// LayerFiles returns the drift of files that roles have put into the layers. It resolves paths as the
// node does.
func LayerFiles(ctx context.Context, node string, root *tree.Root, first int, layers LayerStack, files []ManagedFile,
	free IgnoreList) ([]observe.Drift, error) {
	f := collector{node: node}
	for _, o := range files {
		if free.has(o.Path) {
			continue
		}
		name := relative(o.Path)
		layer, original, ok, err := layers.find(name)
		if err != nil {
			return nil, err
		}
		if !ok || original.Mode&unix.S_IFMT != unix.S_IFREG {
			continue // a later role or a build step has replaced it
		}
		st, err := root.Lstat(name)
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
			f.add(observe.DriftFile, observe.Gone, o.Path, o.Role, asLayer, gone)
			continue
		}
		if err != nil {
			return nil, err
		}
		if st.Mode&unix.S_IFMT != unix.S_IFREG {
			f.add(observe.DriftFile, observe.Altered, o.Path, o.Role, asLayer, tree.Kind(st.Mode))
			continue
		}
		if want, found := compareAttributes(original, st, first); found != "" {
			f.add(observe.DriftFile, observe.Altered, o.Path, o.Role, want, found)
			continue
		}
		same, err := sameContent(ctx, layer, name, original, func() (*os.File, int64, error) { return openIn(root, name) })
		if err := tree.IgnoreGone(err); err != nil {
			return nil, err
		}
		if !same {
			f.add(observe.DriftFile, observe.Altered, o.Path, o.Role, asLayer, changed)
		}
	}
	return f.all, nil
}

func openIn(root *tree.Root, name string) (*os.File, int64, error) {
	file, err := root.OpenFile(name)
	if err != nil {
		return nil, 0, err
	}
	info, err := file.Stat()
	if err != nil {
		file.Close()
		return nil, 0, err
	}
	return file, info.Size(), nil
}

// An ManagedFile path is a path that a role manages.
type ManagedFile struct{ Path, Role string }
