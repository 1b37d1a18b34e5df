package volume

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
)

// An Adoption is the transfer of a volume's directory from one node to another.
type Adoption struct {
	Volume string // its former name
	As     string // its name for the new node
	From   string
	To     string
}

// Adoptions returns the volumes that a node can take over from a node with another name. named
// selects volumes, as VOLUME or as WAS=IS. If it is empty, all volumes that both nodes have are
// selected.
func Adoptions(dirs host.Dirs, key, from string, heir *spec.Node, named []string) ([]Adoption, error) {
	if from == "" || strings.ContainsAny(from, "/@") || strings.HasPrefix(from, ".") {
		return nil, problem.New(problem.Usage, "%q is not a valid node name", from)
	}
	var all []Adoption
	for _, m := range heir.Mounts {
		former, asked := m.Volume, len(named) == 0
		for _, name := range named {
			if before, after, renamed := strings.Cut(name, "="); name == m.Volume || renamed && after == m.Volume {
				former, asked = before, true
			}
		}
		if !asked || m.Copy != "" || m.Shared || m.From().Everywhere || strings.ContainsAny(former, "/@.") || former == "" {
			continue
		}
		then := m
		if former != m.Volume {
			then.Volume, then.Source = former, "" // only data with the host's state can be found under another name
		}
		one := Adoption{former, m.Volume, Path(dirs, key, from, then), Path(dirs, key, heir.Name, m)}
		if info, err := os.Lstat(one.From); err == nil && info.IsDir() && one.From != one.To {
			all = append(all, one)
		}
	}
	if len(all) == 0 || len(all) < len(named) {
		return nil, problem.New(problem.Usage, "%s has no volume data that node %s could adopt", from, heir.Name).
			At(dirs.Volumes(key)).
			Try("orrery volume ls lists all data and its users; move shared data and data on NFS by hand")
	}
	return all, nil
}

// Adopt moves the directory to its new place. If something is in that place, Adopt sets it aside
// and returns its new path in kept. If Adopt is killed at any moment, calling it again completes
// the work. No process may use either directory.
func (a Adoption) Adopt() (kept string, err error) {
	if err := os.MkdirAll(filepath.Dir(a.To), 0o700); err != nil {
		return "", err
	}
	switch err := unix.Rmdir(a.To); err {
	case nil, unix.ENOENT:
	case unix.ENOTEMPTY, unix.EEXIST:
		kept = adoptedName(a.To)
		if err := os.Rename(a.To, kept); err != nil {
			return "", err
		}
	default:
		return "", &fs.PathError{Op: "rmdir", Path: a.To, Err: err}
	}
	return kept, os.Rename(a.From, a.To)
}

// adoptedName returns a new name for a directory that is set aside. No node can have that name.
func adoptedName(path string) string {
	for i := 1; ; i++ {
		name := path + ".before"
		if i > 1 {
			name += strconv.Itoa(i)
		}
		if _, err := os.Lstat(name); errors.Is(err, fs.ErrNotExist) {
			return name
		}
	}
}
