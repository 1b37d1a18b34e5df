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

// Sweep removes what hosts have left whose keeper was killed, and which have a directory in this one.
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
	lock, err := host.TryLock(s.lock(), host.Alone)
	if errors.Is(err, host.ErrHeld) || errors.Is(err, fs.ErrNotExist) { // it is kept, or just begins or ends
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Release()
	group := groupsOf(s.name)
	for _, pid := range group.Processes() {
		// of a host that stood still on cgroup v1: it was killed, and dies when it goes on
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	thaw(s.name)
	err = patiently(func() error {
		if len(group.Processes()) > 0 {
			return errors.New("processes of hosts whose keeper was killed do not end")
		}
		return nil
	})
	removeGroups(s.name)
	return errors.Join(err, s.vacate())
}

// vacate removes the directory of some hosts.
func (s set) vacate() error {
	err := os.RemoveAll(s.dir())
	if top, linked := os.Readlink(s.state); linked == nil {
		_ = os.Remove(top) // if it was the last
	}
	_ = os.Remove(s.state)
	return err
}

// Gone waits until nothing on this machine is of these hosts any more, and says what is, if that takes long.
func (h *Hosts) Gone() error { return h.set.gone() }

func (s set) gone() error {
	return patiently(func() error {
		if left := s.traces(); len(left) > 0 {
			return fmt.Errorf("hosts %s have left %s", s.name, strings.Join(left, ", "))
		}
		return nil
	})
}

// traces returns what is on this machine of some hosts: control groups with who is in them, a directory, disks.
func (s set) traces() []string {
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

// thaw lets all hosts of a name go on.
func thaw(name string) {
	for i := 1; i <= most; i++ {
		_ = groupsOf(name, seat(i)).SetFrozen(false) // most are not there
	}
}

// removeGroups removes the control groups of hosts, and those above them if they were the last.
func removeGroups(name string, host ...string) {
	cgroup.Remove(groupsOf(name, host...))
	for _, h := range hierarchies(mounted) {
		_ = unix.Rmdir(filepath.Join(h.dir, filepath.Dir(groupOf(name))))
	}
}
