package volume

import (
	"maps"
	"path/filepath"
	"slices"

	"golang.org/x/sys/unix"
)

// A difference is what makes a copy as its source is.
type difference struct {
	gone    []string // to be removed from the copy
	changed []string // to be copied, sorted; a directory among them without what is in it
	size    int64    // of the files among them
}

// compare finds the difference between a source and its copy, which was made from the source when it was as before.
func compare(source, before, copied tree, doubtful int64) difference {
	var d difference
	changed := map[string]bool{}
	for path, is := range copied {
		if e, there := source[path]; !there || e.mode&unix.S_IFMT != is.mode&unix.S_IFMT {
			d.gone = append(d.gone, path)
			above(path, changed)
		}
	}
	several := map[[2]uint64]bool{} // files of several names that have changed
	for path, is := range source {
		was, known := before[path]
		has, there := copied[path]
		if known && there && is.untouched(was) && was.since < doubtful && is.alike(has) {
			continue
		}
		changed[path] = true
		above(path, changed)
		if is.links > 1 && !is.directory() {
			several[[2]uint64{is.device, is.inode}] = true
		}
	}
	for path, is := range source {
		if several[[2]uint64{is.device, is.inode}] && is.links > 1 && !is.directory() {
			changed[path] = true // all names of a file are copied at once, so that they are again those of one
			above(path, changed)
		}
	}
	for path := range changed {
		if is, there := source[path]; !there {
			delete(changed, path)
		} else if !is.directory() {
			d.size += is.size
		}
	}
	d.changed = slices.Sorted(maps.Keys(changed))
	return d
}

// above adds the directories above a path: making or removing something in a directory changes its time.
func above(path string, to map[string]bool) {
	for path != "." {
		path = filepath.Dir(path)
		if to[path] {
			return
		}
		to[path] = true
	}
}
