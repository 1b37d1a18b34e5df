package archive

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"orrery/internal/problem"
)

// Whiteouts of the OCI image specification (layer.md, "Whiteouts"), by which a layer hides paths of
// the layers below. They never affect paths of their own layer, whether these come before the
// whiteout or after it.
const (
	whiteoutPrefix = ".wh."
	opaqueWhiteout = ".wh..wh..opq"
)

// nextLayer begins another archive on top of the existing tree.
func (x *extractor) nextLayer() {
	x.layered, x.fresh = true, map[string]bool{}
}

// markPresent records that this archive has an entry at a path. The parent directories then belong to
// this archive as well, even if it has no entries for them.
func (x *extractor) markPresent(name string) {
	for ; name != "." && !x.fresh[name]; name = path.Dir(name) {
		x.fresh[name] = true
	}
}

// applyWhiteout hides what a whiteout of this name hides, and reports whether the name is one of a whiteout.
// A whiteout in a missing directory hides nothing.
func (x *extractor) applyWhiteout(name string) (bool, error) {
	base := path.Base(path.Clean("/" + name))
	hidden, ok := strings.CutPrefix(base, whiteoutPrefix)
	switch {
	case !ok:
		return false, nil
	case hidden == "" || hidden == "." || hidden == "..":
		return true, problem.New(problem.Mistake, "import: a whiteout has no name").
			Try("build the image again with a tool that follows the OCI image specification")
	case strings.HasPrefix(hidden, whiteoutPrefix) && base != opaqueWhiteout:
		return true, nil // metadata of aufs, without a meaning here
	}
	at, err := x.find(name)
	if errors.Is(err, fs.ErrNotExist) {
		return true, nil
	}
	if err != nil {
		return true, err
	}
	dir := path.Dir(at)
	if base == opaqueWhiteout {
		return true, x.hideIn(dir)
	}
	return true, x.hide(path.Join(dir, hidden))
}

// hide removes what earlier layers have at a path.
func (x *extractor) hide(name string) error {
	if !x.fresh[name] {
		return x.root.RemoveAll(name)
	}
	if info, err := x.root.Lstat(name); err != nil || !info.IsDir() {
		return nil // a file of this archive, or already removed by it
	}
	return x.hideIn(name)
}

// hideIn removes what earlier layers have in a directory.
func (x *extractor) hideIn(dir string) error {
	f, err := x.root.Open(dir)
	if err != nil {
		return err
	}
	names, err := f.Readdirnames(-1)
	f.Close()
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := x.hide(path.Join(dir, name)); err != nil {
			return err
		}
	}
	return nil
}
