package reach

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
)

// stamp returns a text that changes with every change of the files. It also sets their sizes.
func (a *arm) stamp() (string, error) {
	text := ""
	for i, path := range a.paths {
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil {
			return "", &os.PathError{Op: "stat", Path: path, Err: err}
		}
		a.sizes[i] = st.Size
		text += host.Stamp(&st) + "; "
	}
	return text, nil
}

func (a *Arms) memoOf(machine string) (path string, err error) {
	dir := a.Memos
	if dir == "" {
		if dir, err = host.Cache(); err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, "helper-"+machine+".json"), nil
}

// recall returns the cached digest of programs with this stamp, or "" if there is none. A wrong
// digest is harmless: the remote host either starts a program that its root installed, or rejects
// the program that it receives.
func (a *Arms) recall(machine, stamp string) string {
	path, err := a.memoOf(machine)
	if err != nil {
		return ""
	}
	return host.Recall(path, stamp)
}

// remember caches a digest.
func (a *Arms) remember(machine, stamp, digest string) {
	if path, err := a.memoOf(machine); err == nil {
		host.Remember(path, stamp, digest)
	}
}
