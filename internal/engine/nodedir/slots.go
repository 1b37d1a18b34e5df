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

// Each node has user ids of its own. So the kernel's limits for one user (inotify instances, keys,
// processes) are not shared, and one node's root has no rights in other nodes. The ids lie above
// those of systemd-nspawn, LXD and the defaults of subuid(5).
const (
	firstID    = 1_900_000_000
	idsPerNode = 65536
)

// IDs returns the range of user ids of the node on the host, or the zero value if the node uses the
// host's ids.
func (r *Record) IDs() rootfs.IDs {
	if r.Privileged || r.Slot == 0 {
		return rootfs.IDs{}
	}
	return rootfs.IDs{First: firstID + r.Slot*idsPerNode, Size: idsPerNode}
}

// Slots is the directory that records which node has which range of user ids. There is one for the
// machine, even with several state directories, because user ids are the kernel's.
const Slots = host.StateDir + "/slots"

// allocateMutex is locked while a range is chosen.
var allocateMutex sync.Mutex

// slots are the ranges of user ids of the nodes in one state directory.
type slots struct {
	dir  string // or "" if all nodes have the host's ids
	dirs host.Dirs
}

func slotsOf(n *Nodes) slots { return slots{n.Slots, n.Dirs} }

// allocate chooses a range of ids that no node on this host has. It claims the range by a symbolic
// link, which only one process can create, so that two runs for different sites never choose the
// same.
func (s slots) allocate(site string, id int) (int, error) {
	if s.dir == "" {
		return 0, nil
	}
	allocateMutex.Lock()
	defer allocateMutex.Unlock()
	if err := os.MkdirAll(filepath.Dir(s.dir), 0o711); err != nil {
		// Nodes' trees are below this directory if it is the usual state directory.
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
			return slot, nil // claimed by a run that was killed before it made the node
		}
		taken[slot] = true
	}
	for slot := 1; ; slot++ { // range 0 is for building layers
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

// free frees the range of a removed node.
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
			if state, _, other := strings.Cut(who, ":"); other && !exists(state) { // the state directory was removed
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

// owner returns the prefix of the link targets of a site's nodes: SITE/, preceded by the state
// directory unless that is the usual one.
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
