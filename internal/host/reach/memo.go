package reach

import (
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
)

// version returns a text that changes with every change of the files. It also sets their sizes.
func (a *build) version() (string, error) {
	text := ""
	for i, path := range a.paths {
		var st unix.Stat_t
		if err := unix.Stat(path, &st); err != nil {
			return "", &os.PathError{Op: "stat", Path: path, Err: err}
		}
		a.sizes[i] = st.Size
		text += host.FileVersion(&st) + "; "
	}
	return text, nil
}

func (a *Builds) digestPath(machine string) (path string, err error) {
	dir := a.Memos
	if dir == "" {
		if dir, err = host.CacheDir(); err != nil {
			return "", err
		}
	}
	return filepath.Join(dir, "helper-"+machine+".json"), nil
}

// loadDigest returns the cached digest of programs with this stamp, or "" if there is none. A wrong
// digest is harmless: the remote host either starts a program that its root installed, or rejects
// the program that it receives.
func (a *Builds) loadDigest(machine, stamp string) string {
	path, err := a.digestPath(machine)
	if err != nil {
		return ""
	}
	return host.LoadDigest(path, stamp)
}

// storeDigest caches a digest.
func (a *Builds) storeDigest(machine, stamp, digest string) {
	if path, err := a.digestPath(machine); err == nil {
		host.StoreDigest(path, stamp, digest)
	}
}
