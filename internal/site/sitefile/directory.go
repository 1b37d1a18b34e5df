package sitefile

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
	"orrery/internal/tree"
)

// A site directory may come from a stranger, such as one in a pull request. Only regular files
// inside the directory are read, and their sizes and number are limited.
const (
	maxFile  = 16 << 20  // bytes of a file that is read into the model; larger files belong elsewhere
	maxAll   = 128 << 20 // bytes of all files
	maxRole  = 1 << 20   // bytes of a role.toml
	maxNamed = 1 << 20   // bytes of a requirements, key or certificate file
	maxRoles = 2000
)

// roleBounds are the limits for the content of a role's directory.
var roleBounds = tree.Bounds{Depth: 32, Names: 10_000, All: 10_000}

// A directory is a site directory that is being read.
type directory struct {
	path   string // where it is read
	home   string // original location, which relative paths in the site file refer to
	tree   *tree.Root
	copied bool       // a copy made by Copy or CopyText
	base   *directory // the site directory whose site file this one extends, or nil
	kept   string     // where a copy has the files of this directory: "" or the path of a base with "/"
	*contents
}

// contents are what was read of a site directory and of those that it extends.
type contents struct {
	left  int64             // bytes that may still be read
	files map[string][]byte // content of all files that were read, by path in a copy
	// images lists the image files and OCI layout directories inside the directories that are
	// imported. They are too large to be read here.
	images []imageFile
	stamps map[string]string // known stamps by image name; the files of these images are not accessed
}

func newContents() *contents { return &contents{left: maxAll, files: map[string][]byte{}} }

// An imageFile is an image inside a site directory.
type imageFile struct {
	dir  *directory
	name string // relative path
}

// openDirectory opens the site directory in dir. Its files were written for the location home,
// which may be the same.
func openDirectory(dir, home string) (*directory, error) {
	// The last component of the path may be a symbolic link. The caller trusts the path, but not
	// the content of the directory.
	root, err := tree.OpenBeneath(dir + "/.")
	if err != nil {
		return nil, err
	}
	return &directory{path: dir, home: home, tree: root, contents: newContents()}, nil
}

func (d *directory) close() {
	if d.base != nil {
		d.base.close()
	}
	d.tree.Close()
}

// absPath returns the absolute path of name in the site file. The result may be outside of the site
// directory.
func (d *directory) absPath(name string) string {
	if filepath.IsAbs(name) {
		return filepath.Clean(name)
	}
	return filepath.Join(d.home, name)
}

// relPath returns the path of name relative to the site directory, or false if it is outside.
func (d *directory) relPath(name string) (string, bool) {
	inside, err := filepath.Rel(d.home, d.absPath(name))
	return inside, err == nil && filepath.IsLocal(inside)
}

// readNamed reads a file that the site file names. The caller adds the position to the problem.
func (d *directory) readNamed(name string) ([]byte, *problem.Problem) {
	inside, ok := d.relPath(name)
	if !ok {
		return nil, mistake("%q is outside the site directory", name).
			Try("copy the file into the site directory and use that path")
	}
	content, err := d.read(inside, maxNamed)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) {
		return nil, d.missingFile(inside)
	}
	return content, readProblem(filepath.Join(d.path, inside), err)
}

// A tooLarge is the error for a file that exceeds its size limit.
type tooLarge struct{ most int64 }

func (e tooLarge) Error() string { return fmt.Sprintf("more than %d MiB", e.most>>20) }

// errAll is the error for a file that is not too large itself, but exceeds the limit for all files.
var errAll = errors.New("the site directory is too large")

// read reads a file of the site directory.
func (d *directory) read(name string, most int64) ([]byte, error) {
	return d.readIn(d.tree, name, most, d.kept+name)
}

// readIn reads a file of a tree. A copy of the site directory has it under the name kept.
func (d *directory) readIn(from *tree.Root, name string, most int64, kept string) ([]byte, error) {
	if content, before := d.files[kept]; before {
		return content, nil
	}
	content, err := from.ReadFile(name, min(most, d.left))
	switch {
	case errors.Is(err, tree.ErrTooLarge) && d.left < most:
		return nil, errAll
	case errors.Is(err, tree.ErrTooLarge):
		return nil, tooLarge{most}
	case err != nil:
		return nil, err
	}
	d.left -= int64(len(content))
	d.files[kept] = content
	return content, nil
}

// readProblem returns the problem for an error of reading part of a site directory, or nil if err is nil.
func readProblem(what string, err error) *problem.Problem {
	var large tooLarge
	switch {
	case err == nil:
		return nil
	case errors.Is(err, tree.ErrOutside), errors.Is(err, unix.ELOOP):
		return mistake("%s points outside the site directory", what).Try("copy its target into the site directory")
	case errors.Is(err, fs.ErrNotExist):
		return mistake("%s points to a missing file", what).Try("remove it, or create its target")
	case errors.Is(err, tree.ErrNotRegular), errors.Is(err, unix.ENXIO), errors.Is(err, unix.EISDIR):
		return mistake("%s is not a file", what).Try("put a file there, or remove it")
	case errors.Is(err, unix.ENOTDIR):
		return mistake("%s is not a directory", what).Try("create a directory there, or remove it")
	case errors.Is(err, errAll):
		return mistake("the site directory has more than %d MiB of files to read", maxAll>>20).
			Try("put data on a volume or in a package")
	case errors.As(err, &large):
		return mistake("%s has %v", what, large).Try("put data on a volume or in a package")
	}
	return mistake("%s cannot be read", what).Because(problem.PathErrorCause(err)).Try("make it readable")
}

// missingFile returns the problem for a file that does not exist, with the nearest existing name.
func (d *directory) missingFile(name string) *problem.Problem {
	p := mistake("file %s does not exist", name)
	// if the directory is missing, there is no nearest name
	beside, _ := d.tree.Names(path.Dir(name), roleBounds.Names)
	if nearest := problem.Suggest(path.Base(name), beside); nearest != "" {
		return p.Try("did you mean %s?", path.Join(path.Dir(name), nearest))
	}
	return p.Try("create it or correct the path")
}

// image returns the path of an imported image, the path to read it from if that differs, and a
// stamp that changes with the image. The stamp needs no read of the image. The image may be outside
// of the site directory, because images are large and often shared by sites.
func (d *directory) image(name string) (at, from, stamp string, p *problem.Problem) {
	at = d.absPath(name)
	inside, ok := d.relPath(name)
	if !ok {
		stamp, p = stampOutside(at)
		return at, "", stamp, p
	}
	if stamp, p = d.stampInside(inside); p != nil {
		return at, "", "", p
	}
	d.images = append(d.images, imageFile{d, inside})
	if d.path != d.home {
		from = filepath.Join(d.path, inside)
	}
	return at, from, stamp, nil
}

func (d *directory) stampInside(name string) (string, *problem.Problem) {
	info, err := d.tree.Stat(name)
	if err == nil && info.Mode&unix.S_IFMT == unix.S_IFDIR {
		name = path.Join(name, ociIndex)
		info, err = d.tree.Stat(name)
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ENOTDIR):
		return "", d.missingFile(name)
	case errors.Is(err, tree.ErrOutside):
		return "", readProblem(filepath.Join(d.path, name), err).Try("write the path of the image itself")
	case err == nil && info.Mode&unix.S_IFMT != unix.S_IFREG:
		err = tree.ErrNotRegular
	}
	if err != nil {
		return "", readProblem(filepath.Join(d.path, name), err)
	}
	return stampOf(info), nil
}

// stampOutside returns the stamp of a file anywhere on this machine. Its problems do not reveal
// what else exists there.
func stampOutside(at string) (string, *problem.Problem) {
	var info unix.Stat_t
	err := unix.Stat(at, &info)
	if err == nil && info.Mode&unix.S_IFMT == unix.S_IFDIR {
		err = unix.Stat(filepath.Join(at, ociIndex), &info)
	}
	switch {
	case err != nil:
		return "", mistake("image %s does not exist", at).Try("create it or correct the path")
	case info.Mode&unix.S_IFMT != unix.S_IFREG:
		return "", mistake("%s is not an image", at).Try("use an archive or a directory in OCI layout")
	}
	return stampOf(&info), nil
}

// ociIndex is the file in an OCI layout directory that changes with every change of the image.
const ociIndex = "index.json"

func stampOf(info *unix.Stat_t) string {
	return fmt.Sprintf("%d-%d", info.Size, info.Mtim.Nano())
}
