package sshconfig

import (
	"errors"
	"io/fs"
	"os"
	"os/user"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"orrery/internal/problem"
)

// A home is the home directory of the user for whom a configuration is installed. All access to it
// goes through an os.Root, because root must not follow a link out of it.
type home struct {
	root     *os.Root
	uid, gid int
}

// openHome opens the home directory of the caller, or of the user who called by sudo.
func openHome() (*home, error) {
	who, err := caller()
	if err != nil {
		return nil, problem.New(problem.Unable, "the caller's home directory is unknown").Because(err)
	}
	h := &home{uid: -1, gid: -1}
	if os.Geteuid() == 0 {
		if h.uid, err = strconv.Atoi(who.Uid); err != nil {
			return nil, err
		}
		if h.gid, err = strconv.Atoi(who.Gid); err != nil {
			return nil, err
		}
	}
	if h.root, err = os.OpenRoot(who.HomeDir); err != nil {
		return nil, problem.New(problem.Unable, "the home directory cannot be opened").At(who.HomeDir).
			Because(problem.PathErrorCause(err))
	}
	return h, nil
}

// caller returns the user who runs this program. It relies on SUDO_UID only as root, who can become
// any user anyway. It is a variable, so that tests can change it.
var caller = func() (*user.User, error) {
	if uid := os.Getenv("SUDO_UID"); uid != "" && os.Geteuid() == 0 {
		return user.LookupId(uid)
	}
	return user.Current()
}

func (h *home) close() { h.root.Close() }

// path returns the path of a file of the home directory for messages and for ssh.
func (h *home) path(name string) string { return filepath.Join(h.root.Name(), name) }

// read returns the content and the mode of a file. A missing file is empty, with mode 0600.
func (h *home) read(name string) ([]byte, fs.FileMode, error) {
	info, err := h.root.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, 0o600, nil
	case err != nil:
		return nil, 0, h.failed(name, "cannot be read", err)
	case !info.Mode().IsRegular():
		return nil, 0, problem.New(problem.Unable, "not a regular file").At(h.path(name)).
			Try("put a file there, or remove it")
	case info.Size() > maxConfig:
		return nil, 0, problem.New(problem.Unable, "larger than an ssh configuration can be").At(h.path(name))
	}
	content, err := h.root.ReadFile(name)
	if err != nil {
		return nil, 0, h.failed(name, "cannot be read", err)
	}
	return content, info.Mode().Perm(), nil
}

// maxConfig limits the size of an ssh configuration, in bytes.
const maxConfig = 4 << 20

// resolve returns the file of the home directory that a name stands for, because people link their
// configuration to a directory under version control.
func (h *home) resolve(name string) (string, error) {
	for range 8 {
		to, err := h.root.Readlink(name)
		if err != nil {
			return name, nil // it is no link, or the caller's next access says why it cannot be read
		}
		if !filepath.IsAbs(to) {
			to = path.Join(path.Dir(name), to)
		} else if rest, inside := strings.CutPrefix(to, h.root.Name()+"/"); inside {
			to = path.Clean(rest)
		}
		if !filepath.IsLocal(to) {
			break
		}
		name = to
	}
	return "", problem.New(problem.Unable, "a link that leads out of the home directory").At(h.path(name)).
		Try("write this as its first line: %s", include)
}

// makeDir makes a directory, which belongs to the user.
func (h *home) makeDir(name string) error {
	err := h.root.Mkdir(name, 0o700)
	switch {
	case errors.Is(err, fs.ErrExist):
		return nil
	case err != nil:
		return h.failed(name, "cannot be made", err)
	}
	return h.own(name)
}

// write replaces a file at once, so that ssh never reads half of it.
func (h *home) write(name string, content []byte, mode fs.FileMode) error {
	fresh := path.Join(path.Dir(name), "."+path.Base(name)+".orrery")
	_ = h.root.Remove(fresh) // left by a killed run
	f, err := h.root.OpenFile(fresh, os.O_WRONLY|os.O_CREATE|os.O_EXCL, mode)
	if err != nil {
		return h.failed(name, "cannot be written", err)
	}
	_, err = f.Write(content)
	if err == nil {
		err = f.Chmod(mode) // whatever the umask is
	}
	if closed := f.Close(); err == nil {
		err = closed
	}
	if err == nil {
		err = h.own(fresh)
	}
	if err == nil {
		err = h.root.Rename(fresh, name)
	}
	if err != nil {
		_ = h.root.Remove(fresh)
		return h.failed(name, "cannot be written", err)
	}
	return nil
}

// own makes the user the owner of a file that this program has made.
func (h *home) own(name string) error {
	if h.uid < 0 {
		return nil
	}
	return h.root.Lchown(name, h.uid, h.gid)
}

// remove removes a file or an empty directory, if it exists.
func (h *home) remove(name string) error {
	if err := h.root.Remove(name); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return h.failed(name, "cannot be removed", err)
	}
	return nil
}

func (h *home) failed(name, what string, err error) error {
	return problem.New(problem.Failed, "%s", what).At(h.path(name)).Because(problem.PathErrorCause(err))
}
