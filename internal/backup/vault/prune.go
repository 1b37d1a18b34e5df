package vault

import "orrery/internal/problem"

// Prune removes all but the last backups of each site, and the blocks of which none of the others
// needs anything. It returns the names of the backups that went and how many bytes of blocks did.
func (r *Repository) Prune(keep int) (gone []string, freed int64, err error) {
	if keep < 1 {
		return nil, 0, problem.New(problem.Usage, "at least one backup is kept").Try("--keep 1")
	}
	ids, err := r.Backups()
	if err != nil {
		return nil, 0, err
	}
	count, used := map[string]int{}, map[Digest]bool{}
	for i := len(ids) - 1; i >= 0; i-- {
		m, err := r.Manifest(ids[i])
		if err != nil {
			return nil, 0, err // what it needs is not known
		}
		if count[m.Key]++; count[m.Key] > keep {
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

// sweep removes the blocks that are not used. The index tells of those that stay before any goes.
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
	if len(now) > len(former) { // else there was one already that tells of just these
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
