package hosts

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"orrery/internal/engine/cgroup"
	"orrery/internal/host"
)

func dirOf(name string) string  { return filepath.Join(State(), name) }
func lockOf(name string) string { return filepath.Join(dirOf(name), "lock") }

// Sweep removes what hosts have left whose keeper was killed.
func Sweep() error {
	entries, err := os.ReadDir(State())
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, e := range entries {
		err = errors.Join(err, sweep(e.Name()))
	}
	return err
}

func sweep(name string) error {
	lock, err := host.TryLock(lockOf(name), host.Alone)
	if errors.Is(err, host.ErrHeld) || errors.Is(err, fs.ErrNotExist) { // it is kept, or just begins or ends
		return nil
	}
	if err != nil {
		return err
	}
	defer lock.Release()
	group := groupsOf(name)
	for _, pid := range group.Processes() { // of a host that stood still on cgroup v1: it was killed, and dies when it goes on
		_ = unix.Kill(pid, unix.SIGKILL)
	}
	thaw(name)
	err = patiently(func() error {
		if len(group.Processes()) > 0 {
			return errors.New("processes of hosts whose keeper was killed do not end")
		}
		return nil
	})
	removeGroups(name)
	return errors.Join(err, vacate(State(), name))
}

// vacate removes the directory of some hosts.
func vacate(state, name string) error {
	err := os.RemoveAll(filepath.Join(state, name))
	_ = os.Remove(State()) // if it was the last
	return err
}

// Gone waits until nothing on this machine is of these hosts any more, and says what is, if that takes long.
func (h *Hosts) Gone() error { return gone(h.name) }

func gone(name string) error {
	return patiently(func() error {
		if left := traces(name); len(left) > 0 {
			return fmt.Errorf("hosts %s have left %s", name, strings.Join(left, ", "))
		}
		return nil
	})
}

// traces gives what is on this machine of hosts of a name: control groups with who is in them, a directory, disks.
func traces(name string) []string {
	var left []string
	if exists(dirOf(name)) {
		left = append(left, dirOf(name))
	}
	for _, h := range hierarchies(mounted) {
		if group := filepath.Join(h.dir, groupOf(name)); exists(group) {
			left = append(left, fmt.Sprintf("%s with processes %v", group, groupsOf(name).Processes()))
		}
	}
	loops, _ := filepath.Glob("/sys/block/loop*/loop/backing_file")
	for _, path := range loops {
		if text, _ := os.ReadFile(path); strings.HasPrefix(string(text), dirOf(name)+"/") {
			left = append(left, path+": "+strings.TrimSpace(string(text)))
		}
	}
	return left
}

// thaw lets all hosts of a name go on.
func thaw(name string) {
	for i := 1; i <= most; i++ {
		_ = groupsOf(name, NameOf(i)).SetFrozen(false) // most are not there
	}
}

// removeGroups removes the control groups of hosts, and those above them if they were the last.
func removeGroups(name string, host ...string) {
	cgroup.Remove(groupsOf(name, host...))
	for _, h := range hierarchies(mounted) {
		_ = unix.Rmdir(filepath.Join(h.dir, filepath.Dir(groupOf(name))))
	}
}
