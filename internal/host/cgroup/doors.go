package cgroup

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"
)

// leafName is the group of version 2, inside a container's group, in which commands begin that are
// run in the container from outside. Systemd in the container moves its own processes down, and
// turns on controllers for the groups in its own group. Such a group cannot contain processes
// (cgroups(7), "no internal processes"). LXC creates .lxc for the same reason.
const leafName = ".orrery"

// OpenEntryFiles opens the files by which a process enters the group of a container. For each hierarchy of
// version 1, that is the file to which a thread writes "0". For version 2, it is the directory in
// which a child begins (CLONE_INTO_CGROUP), or nil without version 2. The files are not registered
// with the runtime's poller, which saves five system calls for each.
func (g Group) OpenEntryFiles() (tasks []*os.File, leaf *os.File, err error) {
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

// tasks opens the tasks files of a group of version 1, and returns the path of a hierarchy of
// version 2 beside them. It tries to open the file before it checks the version, to save system
// calls.
func (p mountPoint) tasks(group string) (tasks []*os.File, v2 string, err error) {
	entries, err := os.ReadDir(string(p))
	if err != nil {
		return nil, "", err
	}
	for _, e := range entries {
		if !e.IsDir() {
			continue // a symbolic link is another name of a hierarchy
		}
		root := filepath.Join(string(p), e.Name())
		f, err := openIn(unix.AT_FDCWD, filepath.Join(root, group), "tasks", unix.O_WRONLY)
		switch {
		case err == nil:
			tasks = append(tasks, f)
		case !errors.Is(err, fs.ErrNotExist):
			closeAll(tasks)
			return nil, "", err
		case isV2(root): // otherwise the container is not in this hierarchy
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
