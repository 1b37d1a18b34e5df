package reach

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
)

// stamp tells whether files are still what they were. It takes down how long they are.
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

// recall returns the digest of programs with a stamp; "": nobody has made it, or it was of others.
// A wrong one starts nothing on another host but what root has put there, or is told when the
// program comes there.
func (a *Arms) recall(machine, stamp string) string {
	path, err := a.memoOf(machine)
	if err != nil {
		return ""
	}
	return host.Recall(path, stamp)
}

// remember takes it down.
func (a *Arms) remember(machine, stamp, digest string) {
	if path, err := a.memoOf(machine); err == nil {
		host.Remember(path, stamp, digest)
	}
}
