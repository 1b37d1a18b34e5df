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
	"orrery/internal/tree"
	"orrery/internal/treesync"
)

// An extractor extracts entries of archives to a directory. It writes nothing outside of the
// directory, whatever links the archives contain.
type extractor struct {
	root  *os.Root
	owned bool // extract owners, modes, attributes and named pipes
	by    *bounds

	layered bool            // the archive is one of several; its whiteouts remove paths of earlier archives
	fresh   map[string]bool // paths of this archive and their parents, which its own whiteouts do not affect
	times   []dirTime       // of directories; set at the end, because creating files changes them
}

type dirTime struct {
	name string
	time time.Time
}

func newExtractor(dir string, owned bool, by *bounds) (*extractor, error) {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return nil, err
	}
	root, err := os.OpenRoot(dir)
	return &extractor{root: root, owned: owned, by: by, fresh: map[string]bool{}}, err
}

func (x *extractor) close() { x.root.Close() }

// entry extracts an entry.
func (x *extractor) entry(h *tar.Header, content io.Reader) error {
	if err := x.extract(h, content); err != nil {
		return fmt.Errorf("%s: %w", h.Name, err)
	}
	return nil
}

func (x *extractor) extract(h *tar.Header, content io.Reader) error {
	if h.Typeflag == tar.TypeXGlobalHeader {
		return nil
	}
	if x.layered {
		if mark, err := x.applyWhiteout(h.Name); mark || err != nil {
			return err
		}
	}
	name, err := x.resolvePath(h.Name)
	if err != nil {
		return err
	}
	if strings.HasPrefix(name, "dev/") {
		return nil // each node gets its own
	}
	if x.owned && (h.Uid < 0 || h.Gid < 0 || h.Uid >= nodeIDs || h.Gid >= nodeIDs) {
		return problem.New(problem.Mistake, "import: %s belongs to %d:%d, but a node has the ids 0 to %d only", h.Name,
			h.Uid, h.Gid, nodeIDs-1).
			Try("export the file system with the owners that the container itself sees")
	}
	if x.layered {
		x.markPresent(name)
	}
	if h.Typeflag == tar.TypeDir {
		return x.directory(h, name)
	}
	if name == "." {
		return errors.New("the top of the tree is not a directory")
	}
	if h.Typeflag == tar.TypeLink {
		target, err := x.find(h.Linkname)
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
		return problem.New(problem.Mistake,
			"import: %s is a device, but nodes only have the devices that Orrery creates", h.Name).
			Try("leave it out of the archive")
	case tar.TypeFifo:
		if !x.owned {
			return nil
		}
		return x.pipe(h, name)
	}
	return fmt.Errorf("an entry has the unknown type %q", h.Typeflag)
}

// resolvePath returns the path of an entry in the tree. It follows links among the parent directories as
// a system with that root would (var/run/x is run/x if var/run points to /run). It creates missing
// directories.
func (x *extractor) resolvePath(name string) (string, error) {
	return x.resolve(name, func(dir string, info fs.FileInfo) error {
		if info != nil { // a later archive may have a directory where there was a file
			if err := x.root.Remove(dir); err != nil {
				return err
			}
		}
		if err := x.by.path(dir); err != nil {
			return err
		}
		return x.root.Mkdir(dir, 0o755)
	})
}

// find returns the same path as place, but changes nothing. If a parent directory is missing, it
// returns fs.ErrNotExist.
func (x *extractor) find(name string) (string, error) {
	return x.resolve(name, func(dir string, _ fs.FileInfo) error {
		return &fs.PathError{Op: "find", Path: dir, Err: fs.ErrNotExist}
	})
}

// resolve follows the links among the parent directories of a name. It calls lacking for each that
// is missing, with nil, or that is not a directory. Lacking must create the directory or return an
// error.
func (x *extractor) resolve(name string, lacking func(dir string, info fs.FileInfo) error) (string, error) {
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
		case err != nil && !errors.Is(err, fs.ErrNotExist):
			return "", err
		case err == nil && info.Mode()&fs.ModeSymlink != 0:
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
		case err != nil || !info.IsDir():
			if err := lacking(next, info); err != nil {
				return "", err
			}
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
	x.times = append(x.times, dirTime{name, h.ModTime})
	return x.setMetadata(f, h)
}

func (x *extractor) file(h *tar.Header, name string, content io.Reader) error {
	f, err := x.root.OpenFile(name, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	if holed, ok := content.(*sparse); ok {
		err = holed.fill(f)
	} else {
		_, err = io.Copy(f, content)
	}
	if err != nil {
		return err
	}
	if err := x.setMetadata(f, h); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	return x.root.Chtimes(name, h.ModTime, h.ModTime)
}

// setMetadata sets the owner, mode and attributes of an open file or directory, in this order: a change
// of owner drops the set-user-ID bit and capabilities.
func (x *extractor) setMetadata(f *os.File, h *tar.Header) error {
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
		if !ok || !treesync.ImportedAttrs.Includes(name) {
			continue
		}
		if err := unix.Fsetxattr(int(f.Fd()), name, []byte(value), 0); err != nil && !errors.Is(err, unix.ENOTSUP) {
			return fmt.Errorf("attribute %s: %w", name, err)
		}
	}
	return nil
}

// pipe creates a named pipe.
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

// finish sets the times of directories. It skips those that a later entry has removed or replaced,
// and follows no link to another directory.
func (x *extractor) finish() error {
	root, err := tree.OpenBeneath(x.root.Name())
	if err != nil {
		return err
	}
	defer root.Close()
	for _, d := range x.times { // in the order of the entries: the last one of a directory counts
		fd, err := root.OpenNoFollow(splitPath(d.name))
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ENOTDIR) || errors.Is(err, unix.ELOOP) {
			continue
		}
		if err == nil {
			err = setTime(fd, d.time)
			unix.Close(fd) //nolint:errcheck // nothing was written to it
		}
		if err != nil {
			return &fs.PathError{Op: "chtimes", Path: filepath.Join(x.root.Name(), d.name), Err: err}
		}
	}
	x.times = nil
	return nil
}

// setTime sets the times of an open directory.
func setTime(dir int, to time.Time) error {
	at, err := unix.TimeToTimespec(to)
	if err != nil {
		return err
	}
	return unix.UtimesNanoAt(dir, ".", []unix.Timespec{at, at}, 0)
}

// nodeIDs is the number of user ids, and of group ids, that a node has.
const nodeIDs = 65536
