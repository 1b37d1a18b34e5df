package volume

// A Size is how much a tree is.
type Size struct {
	Apparent int64 `json:"apparent"` // bytes in its files
	Disk     int64 `json:"disk"`     // bytes that they take; those that are shared with clones are counted for each
	Files    int   `json:"files"`
}

// SizeOf measures a tree. A file of several names counts once.
func SizeOf(dir string) (s Size, err error) {
	found, err := look(dir)
	seen := map[[2]uint64]bool{}
	for _, e := range found {
		id := [2]uint64{e.device, e.inode}
		if seen[id] {
			continue
		}
		seen[id] = true
		s.Disk += e.disk
		if !e.directory() {
			s.Apparent += e.size
			s.Files++
		}
	}
	return s, err
}
