package nodedir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"

	"orrery/internal/host"
	"orrery/internal/image/rootfs"
)

// Nodes have ids of their own, so that the kernel's limits for one user (inotify instances, keys,
// processes) are not shared, and so that one node's root is nobody to all others. They lie above
// those of systemd-nspawn, LXD and subuid(5)'s defaults.
const (
	firstID = 1_900_000_000
	idsEach = 65536
)

// IDs are those that a node has on the host; none if they are the host's own.
func (r *Record) IDs() rootfs.IDs {
	if r.Privileged || r.Slot == 0 {
		return rootfs.IDs{}
	}
	return rootfs.IDs{First: firstID + r.Slot*idsEach, Size: idsEach}
}

// Slots says whose each range of user ids is. It is one for the machine, whatever state directories
// there are: user ids are the kernel's.
const Slots = host.StateDir + "/slots"

// choosing is held while one is chosen.
var choosing sync.Mutex

// slots are the ranges of user ids of the nodes that are kept in a state directory.
type slots struct {
	dir  string // "": all nodes have the host's ids
	dirs host.Dirs
}

func slotsOf(n *Nodes) slots { return slots{n.Slots, n.Dirs} }

// take chooses a range of ids that no node on this host has. A file that only one can make takes it, so that
// two sites being brought up at once do not choose the same.
func (s slots) take(site string, id int) (int, error) {
	if s.dir == "" {
		return 0, nil
	}
	choosing.Lock()
	defer choosing.Unlock()
	if err := os.MkdirAll(filepath.Dir(s.dir), 0o711); err != nil {
		// nodes' trees are below it, if this is the usual state directory
		return 0, err
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return 0, err
	}
	owner := s.owner(site) + strconv.Itoa(id)
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return 0, err
	}
	taken := map[int]bool{}
	for _, entry := range entries {
		slot, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		who, _ := os.Readlink(filepath.Join(s.dir, entry.Name()))
		if who == owner {
			return slot, nil // taken by a run that was killed before it made the node
		}
		taken[slot] = true
	}
	for slot := 1; ; slot++ { // 0 is where layers are built
		if taken[slot] {
			continue
		}
		err := os.Symlink(owner, filepath.Join(s.dir, strconv.Itoa(slot)))
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		return slot, err
	}
}

// free frees the range of a node.
func (s slots) free(r *Record) error {
	if r.Slot == 0 {
		return nil
	}
	path := filepath.Join(s.dir, strconv.Itoa(r.Slot))
	if who, _ := os.Readlink(path); who != s.owner(r.Site)+strconv.Itoa(r.ID) {
		return nil
	}
	return os.Remove(path)
}

// sweep frees the ranges of nodes that do not exist.
func (s slots) sweep(site string) error {
	if s.dir == "" {
		return nil
	}
	entries, err := os.ReadDir(s.dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	for _, entry := range entries {
		path := filepath.Join(s.dir, entry.Name())
		who, _ := os.Readlink(path)
		id, mine := strings.CutPrefix(who, s.owner(site))
		if !mine {
			if state, _, other := strings.Cut(who, ":"); other && !exists(state) { // removed with all that was in it
				err = errors.Join(err, os.Remove(path))
			}
			continue
		}
		if !exists(filepath.Join(s.dirs.Nodes(site), id)) {
			err = errors.Join(err, os.Remove(path))
		}
	}
	return err
}

// owner returns what the owners of the slots of a site's nodes begin with: SITE/, and before that
// the state directory if it is not the usual one.
func (s slots) owner(site string) string {
	if s.dirs.State == filepath.Dir(s.dir) {
		return site + "/"
	}
	return s.dirs.State + ":" + site + "/"
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return !errors.Is(err, fs.ErrNotExist)
}
