package rehearsal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/host"
	"orrery/internal/host/cgroup"
	"orrery/internal/tree"
)

// Sweep removes what hosts in the state directory have left after their supervisor was killed.
func Sweep(state string) error {
	entries, err := os.ReadDir(state)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		err = errors.Join(err, set{state, e.Name()}.sweep())
	}
	return err
}

func (s set) sweep() error {
	lock, err := host.TryLock(s.lock(), host.Exclusive)
	if errors.Is(err, host.ErrHeld) || errors.Is(err, fs.ErrNotExist) { // it is running, or is just starting or ending
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Release()
	group := groupsOf(s.name)
	for _, pid := range group.Processes() {
		// On cgroup v1, a frozen process that was killed dies only when it is thawed.
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	thaw(s.name)
	err = retry(func() error {
		if len(group.Processes()) > 0 {
			return errors.New("processes of hosts whose supervisor was killed do not end")
		}
		return nil
	})
	removeGroups(s.name)
	return errors.Join(err, s.removeDir())
}

// removeDir removes the directory of a set of hosts.
func (s set) removeDir() error {
	err := os.RemoveAll(s.dir())
	if top, linked := os.Readlink(s.state); linked == nil {
		_ = os.Remove(top) // only if it is empty
	}
	_ = os.Remove(s.state)
	return err
}

// WaitGone waits until nothing of these hosts is left on this machine. After a timeout, the error lists
// what is left.
func (h *Hosts) WaitGone() error { return h.set.waitGone() }

func (s set) waitGone() error {
	return retry(func() error {
		if left := s.remains(); len(left) > 0 {
			return fmt.Errorf("hosts %s left behind %s", s.name, strings.Join(left, ", "))
		}
		return nil
	})
}

// remains returns what is left of a set of hosts on this machine: control groups with their
// processes, a directory, disks.
func (s set) remains() []string {
	var left []string
	if tree.Exists(s.dir()) {
		left = append(left, s.dir())
	}
	for _, h := range hierarchies(mounted) {
		if group := filepath.Join(h.dir, groupOf(s.name)); tree.Exists(group) {
			left = append(left, fmt.Sprintf("%s with processes %v", group, groupsOf(s.name).Processes()))
		}
	}
	loops, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, path := range loops {
		if text, _ := os.ReadFile(path); strings.HasPrefix(string(text), s.dir()+"/") {
			left = append(left, path+": "+strings.TrimSpace(string(text)))
		}
	}
	return left
}

// thaw thaws all hosts of a set.
func thaw(name string) {
	for i := 1; i <= maxHosts; i++ {
		_ = groupsOf(name, portName(i)).SetFrozen(false) // most do not exist
	}
}

// removeGroups removes the control groups of hosts, and the parent groups if they are empty.
func removeGroups(name string, host ...string) {
	cgroup.Remove(groupsOf(name, host...))
	for _, h := range hierarchies(mounted) {
		_ = unix.Rmdir(filepath.Join(h.dir, filepath.Dir(groupOf(name))))
	}
}
