package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// leafName is the group of version 2, inside a container's, in which commands begin that are run there from outside.
// Systemd in the container moves its own processes down and turns controllers on for the groups in its own, and such a
// group takes no processes (cgroups(7), "no internal processes"). LXC makes .lxc for this.
const leafName = ".orrery"

// Doors opens the ways into the group of a container: of each hierarchy of version 1 the file to which a thread writes "0"
// to enter, and of version 2 the directory in which a child is to begin (CLONE_INTO_CGROUP), or nil without version 2.
// They are opened without the runtime's poller, which would take five more system calls for each.
func (g Group) Doors() (tasks []*os.File, leaf *os.File, err error) {
	v1, v2 := g.at.versions()
	for _, root := range v1 {
		f, err := openIn(unix.AT_FDCWD, filepath.Join(root, g.name), "tasks", unix.O_WRONLY)
		if errors.Is(err, fs.ErrNotExist) {
			continue // a hierarchy that the container is not in
		}
		if err != nil {
			closeAll(tasks)
			return nil, nil, err
		}
		tasks = append(tasks, f)
	}
	if v2 == "" {
		return tasks, nil, nil
	}
	at := filepath.Join(v2, g.name, leafName)
	err = os.Mkdir(at, 0o755)
	if err == nil || errors.Is(err, fs.ErrExist) {
		leaf, err = openIn(unix.AT_FDCWD, filepath.Dir(at), leafName, unix.O_RDONLY|unix.O_DIRECTORY)
	}
	if errors.Is(err, fs.ErrNotExist) {
		return tasks, nil, nil
	}
	if err != nil {
		closeAll(tasks)
		return nil, nil, err
	}
	return tasks, leaf, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
