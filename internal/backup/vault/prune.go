package vault

import "orrery/internal/problem"

// Prune removes all but the latest backups of each site, and the blocks that no other backup needs.
// It returns the names of the removed backups and the size of the removed blocks.
func (r *Repository) Prune(keep int) (gone []string, freed int64, err error) {
	return r.PruneSite("", keep)
}

// PruneSite does the same for the site with a key, or for each site for "".
func (r *Repository) PruneSite(key string, keep int) (gone []string, freed int64, err error) {
	if keep < 1 {
		return nil, 0, problem.New(problem.Usage, "at least one backup must be kept").Try("use --keep 1")
	}
	ids, err := r.Backups()
	if err != nil {
		return nil, 0, err
	}
	count, used := map[string]int{}, map[Digest]bool{}
	for i := len(ids) - 1; i >= 0; i-- {
		m, err := r.Manifest(ids[i])
		if err != nil {
			return nil, 0, err // it is unknown which blocks it needs
		}
		if count[m.Key]++; count[m.Key] > keep && (key == "" || m.Key == key) {
			gone = append(gone, ids[i])
			continue
		}
		blocks, err := usedBlocks(r, m)
		if err != nil {
			return nil, 0, err
		}
		for _, block := range blocks {
			used[block] = true
		}
	}
	for _, id := range gone {
		if err := r.root.Remove("backups/" + id + ".json"); err != nil {
			return gone, freed, err
		}
	}
	freed, err = r.sweep(used)
	return gone, freed, err
}

// sweep removes unused blocks. Before that, it writes an index of the remaining ones.
func (r *Repository) sweep(used map[Digest]bool) (freed int64, err error) {
	former, err := r.indexes.names()
	if err != nil {
		return 0, err
	}
	stay := map[Digest][]piece{}
	var unused []Digest
	for block, pieces := range r.index.blocks {
		if used[block] {
			stay[block] = pieces
		} else {
			unused = append(unused, block)
		}
	}
	if len(unused) == 0 {
		return 0, nil
	}
	if err := r.indexes.add(stay); err != nil {
		return 0, err
	}
	now, err := r.indexes.names()
	if err != nil {
		return 0, err
	}
	if len(now) > len(former) { // else an existing index file lists exactly these blocks
		if err := r.indexes.remove(former); err != nil {
			return 0, err
		}
	}
	for _, block := range unused {
		if st, err := r.root.Lstat(blockName(block)); err == nil {
			freed += st.Size
		}
		if err := r.root.Remove(blockName(block)); err != nil {
			return freed, err
		}
	}
	return freed, nil
}
