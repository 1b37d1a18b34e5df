package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// leafName is the group of version 2, inside a container's, in which commands begin that are run
// there from outside. Systemd in the container moves its own processes down and turns controllers
// on for the groups in its own, and such a group takes no processes (cgroups(7), "no internal
// processes"). LXC makes .lxc for this.
const leafName = ".orrery"

// Doors opens the ways into the group of a container: of each hierarchy of version 1 the file to
// which a thread writes "0" to enter, and of version 2 the directory in which a child is to begin
// (CLONE_INTO_CGROUP), or nil without version 2. They are opened without the runtime's poller,
// which would take five more system calls for each.
func (g Group) Doors() (tasks []*os.File, leaf *os.File, err error) {
	v2 := string(g.at)
	if !isV2(v2) {
		if tasks, v2, err = g.at.tasks(g.name); err != nil || v2 == "" {
			return tasks, nil, err
		}
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

// tasks opens those of a group of version 1, and returns where version 2 is beside them. It asks of
// no hierarchy what it is that can be opened.
func (p place) tasks(group string) (tasks []*os.File, v2 string, err error) {
	entries, err := os.ReadDir(string(p))
	if err != nil {
		return nil, "", err
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue // another name of one
		}
		root := filepath.Join(string(p), e.Name())
		f, err := openIn(unix.AT_FDCWD, filepath.Join(root, group), "tasks", unix.O_WRONLY)
		switch {
		case err == nil:
			tasks = append(tasks, f)
		case !errors.Is(err, fs.ErrNotExist):
			closeAll(tasks)
			return nil, "", err
		case isV2(root): // else the container is not in it
			v2 = root
		}
	}
	return tasks, v2, nil
}

func closeAll(files []*os.File) {
	for _, f := range files {
		f.Close()
	}
}
