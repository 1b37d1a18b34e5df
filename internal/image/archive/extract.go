package archive

import (
	"archive/tar"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/problem"
)

// An extractor lays down the entries of archives in a directory, and nothing outside of it, whatever links they contain.
type extractor struct {
	root  *os.Root
	owned bool // with owners, modes, attributes and named pipes

	layered bool            // the archive is one of several, whose marks remove what earlier ones brought
	fresh   map[string]bool // what this archive has brought, which its marks do not concern
	times   []stamped       // of directories: set at the end, because what is put in them changes them
}

type stamped struct {
	name string
	time time.Time
}

func newExtractor(dir string, owned bool) (*extractor, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	return &extractor{root: root, owned: owned, fresh: map[string]bool{}}, err
}

func (x *extractor) close() { x.root.Close() }

// entry lays down one entry.
func (x *extractor) entry(h *tar.Header, content io.Reader) error {
	if err := x.lay(h, content); err != nil {
		return fmt.Errorf("%s: %w", h.Name, err)
	}
	return nil
}

func (x *extractor) lay(h *tar.Header, content io.Reader) error {
	name, err := x.place(h.Name)
	if err != nil {
		return err
	}
	if x.layered {
		if done, err := x.mark(name); done || err != nil {
			return err
		}
	}
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	if strings.HasPrefix(name, "dev/") {
		return nil // each node gets its own
	}
	if x.owned && (h.Uid < 0 || h.Gid < 0 || h.Uid >= nodeIDs || h.Gid >= nodeIDs) {
		return problem.New(problem.Mistake, "import: %s belongs to %d:%d, but a node has the ids 0 to %d only", h.Name, h.Uid, h.Gid, nodeIDs-1).
			Try("export the file system with the owners that the container itself sees")
	}
	if x.layered {
		x.fresh[name] = true
	}
	if h.Typeflag == tar.TypeDir {
		return x.directory(h, name)
	}
	if name == "." {
		return errors.New("the top of the tree is not a directory")
	}
	if h.Typeflag == tar.TypeLink {
		target, err := x.place(h.Linkname)
		if err != nil {
			return err
		}
		if target == name {
			return nil
		}
		if err := x.root.RemoveAll(name); err != nil {
			return err
		}
		return x.root.Link(target, name)
	}
	if err := x.root.RemoveAll(name); err != nil {
		return err
	}
	switch h.Typeflag {
	case tar.TypeReg:
		return x.file(h, name, content)
	case tar.TypeSymlink:
		if err := x.root.Symlink(h.Linkname, name); err != nil || !x.owned || os.Geteuid() != 0 {
			return err
		}
		return x.root.Lchown(name, h.Uid, h.Gid)
	case tar.TypeChar, tar.TypeBlock:
		return problem.New(problem.Mistake, "import: %s is a device, and no node has devices but those that Orrery gives it", h.Name).
			Try("leave it out of the archive")
	case tar.TypeFifo:
		if !x.owned {
			return nil
		}
		return x.pipe(h, name)
	}
	return fmt.Errorf("an entry of an unknown type %q", h.Typeflag)
}

// place gives where an entry goes: its name in the tree, with the links among its directories followed as a system with
// that root would follow them (var/run/x is run/x if var/run points to /run). Directories that are missing are made.
func (x *extractor) place(name string) (string, error) {
	clean := path.Clean("/" + name)[1:]
	if clean == "" {
		return ".", nil
	}
	parts := strings.Split(clean, "/")
	at := ""
	for links := 0; len(parts) > 1; {
		next := path.Join(at, parts[0])
		info, err := x.root.Lstat(next)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			if err := x.root.Mkdir(next, 0o755); err != nil {
				return "", err
			}
		case err != nil:
			return "", err
		case info.Mode()&fs.ModeSymlink != 0:
			if links++; links > 40 {
				return "", unix.ELOOP
			}
			target, err := x.root.Readlink(next)
			if err != nil {
				return "", err
			}
			if !path.IsAbs(target) {
				target = path.Join("/", at, target)
			}
			target = path.Clean(target)[1:]
			at, parts = "", slices.Concat(splitPath(target), parts[1:])
			continue
		case !info.IsDir():
			// A later archive may well make a directory of what was a file.
			if err := x.root.Remove(next); err != nil {
				return "", err
			}
			continue
		}
		at, parts = next, parts[1:]
	}
	return path.Join(at, parts[0]), nil
}

func splitPath(name string) []string {
	if name == "" || name == "." {
		return nil
	}
	return strings.Split(name, "/")
}

// Marks of the OCI image specification, by which a layer hides what is in those below.
const (
	markOne = ".wh."
	markAll = ".wh..wh..opq"
)

// mark does what a mark says, if it is one.
func (x *extractor) mark(name string) (bool, error) {
	dir, base := path.Split(name)
	switch {
	case base == markAll:
		return true, x.hide(path.Clean(dir))
	case strings.HasPrefix(base, ".wh..wh."):
		return true, nil // notes of aufs, without a meaning here
	case strings.HasPrefix(base, markOne):
		return true, x.root.RemoveAll(path.Join(dir, strings.TrimPrefix(base, markOne)))
	}
	return false, nil
}

// hide removes what earlier layers have in a directory.
func (x *extractor) hide(dir string) error {
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
		inner := path.Join(dir, name)
		if !x.fresh[inner] {
			err = x.root.RemoveAll(inner)
		} else if info, stat := x.root.Lstat(inner); stat == nil && info.IsDir() {
			err = x.hide(inner)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (x *extractor) directory(h *tar.Header, name string) error {
	info, err := x.root.Lstat(name)
	if err != nil || !info.IsDir() {
		if err := x.root.RemoveAll(name); err != nil {
			return err
		}
		if err := x.root.Mkdir(name, 0o755); err != nil {
			return err
		}
	}
	f, err := x.root.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	x.times = append(x.times, stamped{name, h.ModTime})
	return x.dress(f, h)
}

func (x *extractor) file(h *tar.Header, name string, content io.Reader) error {
	f, err := x.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if _, err := io.Copy(f, content); err != nil {
		return err
	}
	if err := x.dress(f, h); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return x.root.Chtimes(name, h.ModTime, h.ModTime)
}

// dress gives an open file or directory its owner, mode and attributes, in this order: a change of owner drops the set-user-ID bit
// and capabilities.
func (x *extractor) dress(f *os.File, h *tar.Header) error {
	if !x.owned {
		return nil
	}
	if os.Geteuid() == 0 {
		if err := f.Chown(h.Uid, h.Gid); err != nil {
			return err
		}
	}
	if err := unix.Fchmod(int(f.Fd()), uint32(h.Mode&0o7777)); err != nil {
		return err
	}
	for key, value := range h.PAXRecords {
		name, ok := strings.CutPrefix(key, "SCHILY.xattr.")
		if !ok || !carried(name) {
			continue
		}
		if err := unix.Fsetxattr(int(f.Fd()), name, []byte(value), 0); err != nil && !errors.Is(err, unix.ENOTSUP) {
			return fmt.Errorf("attribute %s: %w", name, err)
		}
	}
	return nil
}

// carried tells the attributes that belong to the content: not those by which the host's overlayfs or security modules work.
func carried(name string) bool {
	return name == "security.capability" || strings.HasPrefix(name, "user.") || strings.HasPrefix(name, "system.posix_acl_")
}

// pipe makes a named pipe.
func (x *extractor) pipe(h *tar.Header, name string) error {
	dir, err := x.root.Open(path.Dir(name))
	if err != nil {
		return err
	}
	defer dir.Close()
	base, mode := path.Base(name), uint32(h.Mode&0o7777)
	if err := unix.Mknodat(int(dir.Fd()), base, unix.S_IFIFO|mode, 0); err != nil {
		return fmt.Errorf("mknod: %w", err)
	}
	if os.Geteuid() == 0 {
		if err := x.root.Lchown(name, h.Uid, h.Gid); err != nil {
			return err
		}
	}
	return unix.Fchmodat(int(dir.Fd()), base, mode, 0)
}

// next begins another archive, laid over what is there.
func (x *extractor) next() {
	x.layered, x.fresh = true, map[string]bool{}
}

// finish sets the times of directories.
func (x *extractor) finish() error {
	for _, d := range slices.Backward(x.times) {
		if err := x.root.Chtimes(d.name, d.time, d.time); err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, unix.ENOTDIR) {
			return &fs.PathError{Op: "chtimes", Path: filepath.Join(x.root.Name(), d.name), Err: err}
		}
	}
	x.times = nil
	return nil
}

// nodeIDs is how many user ids, and group ids, a node has.
const nodeIDs = 65536
