package backup

import (
	"path/filepath"
	"strings"

	"orrery/internal/engine"
	"orrery/internal/engine/record"
	"orrery/internal/host"
	"orrery/internal/snapshot"
)

// FitSnapshots lets snapshots that were restored be of use here: what in them is of the host is that of this one, as in the nodes
// that have just been made.
func (r *Restoring) FitSnapshots(engines map[string]engine.Engine) error {
	for i := range r.Manifest.Trees {
		t := &r.Manifest.Trees[i]
		if t.Kind != SnapshotTree || r.Twin {
			continue
		}
		s, err := snapshot.Open(r.Dirs, r.Key, filepath.Base(t.Name))
		if err != nil {
			return err
		}
		if err := r.fit(s, engines); err != nil {
			return err
		}
	}
	return nil
}

func (r *Restoring) fit(s *snapshot.Snapshot, engines map[string]engine.Engine) error {
	for _, n := range s.Nodes {
		layered, ok := engines[n.Record.Engine].(engine.Layered)
		if _, err := record.Read(r.Dirs.Node(r.Key, n.Record.ID)); err != nil || !ok || !exists(s.Private(n.Record.ID)) {
			continue // of a node that did not come back
		}
		if err := carry(layered.Private(engine.RefOf(&n.Record.Node)), s.Private(n.Record.ID)); err != nil {
			return err
		}
	}
	for i := range s.Volumes {
		v := &s.Volumes[i]
		if strings.HasSuffix(v.Path, filepath.Join("/sites", r.Key, "volumes", v.Name, v.Node)) { // kept with the state, which may be elsewhere here
			v.Path = filepath.Join(r.Dirs.Volumes(r.Key), v.Name, v.Node)
		}
	}
	return host.WriteJSON(filepath.Join(s.Dir, "snapshot.json"), 0o600, s)
}
