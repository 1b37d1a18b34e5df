package backups

import (
	"maps"
	"slices"

	"orrery/internal/backup/ferry"
	"orrery/internal/backup/vault"
	"orrery/internal/text/humanize"
)

// snapshotsToSend returns the snapshots of the backup as the hosts receive them. A node's part goes to the
// node's host, but only if the host that had the node at the time of the backup supplied it. Parts
// that other hosts supplied are not restored, because the node was no longer theirs (decision 43).
func (r *restoreRun) snapshotsToSend(from *vault.Pieces) (*ferry.SnapshotSet, error) {
	m := *r.manifest
	if r.twin != "" {
		m.Trees = nil // they name directories of the original
	}
	trees := map[int]*vault.Tree{}
	for i := range m.Trees {
		if t := &m.Trees[i]; t.Kind == vault.PrivateTree {
			trees[t.ID] = t
		}
	}
	shelf, err := ferry.OpenSnapshotSet(from, &m, func(node string, id int, kept string) string {
		if t := trees[id]; t == nil || t.Node != node || t.Host != kept {
			return ""
		}
		return r.homes.nodes[node]
	})
	if err != nil {
		return nil, err
	}
	for _, id := range slices.Sorted(maps.Keys(shelf.Stray)) {
		r.notice("not restored from snapshot %s: the parts of %s, which no host receives, or which moved to another host between snapshot and backup",
			id, humanize.List(shelf.Stray[id], 12))
	}
	return shelf, nil
}
