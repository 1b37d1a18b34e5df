package backup

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"orrery/internal/backup/vault"
	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site/check"
	"orrery/internal/snapshot"
	"orrery/internal/text/sanitize"
	"orrery/internal/tree"
	"orrery/internal/volume"
)

// A snapshot contains the specification of its nodes and the paths of its volumes, and a later
// restore of the snapshot trusts them. So the snapshots of a backup stay staged until the restored
// site file has created the nodes. Then their content is replaced by that of the new nodes.

// maxSnapshotBytes limits the size of snapshot.json.
const maxSnapshotBytes = vault.MaxManifestBytes

// eachSnapshot calls do for each staged snapshot.
func (r *Part) eachSnapshot(do func(staged string, s *snapshot.Snapshot) error) error {
	for i := range r.Manifest.Trees {
		t := &r.Manifest.Trees[i]
		at, _ := r.places(t)
		if t.Kind != vault.SnapshotTree || at == "" || !tree.Exists(at) {
			continue
		}
		s, err := readSnapshot(at)
		if err == nil {
			err = ValidateSnapshot(s, t.SnapshotName(), r.Key)
		}
		if err != nil {
			return r.damaged(t.Name, err)
		}
		if err := do(at, s); err != nil {
			return err
		}
	}
	return nil
}

func readSnapshot(dir string) (*snapshot.Snapshot, error) {
	root, err := tree.Open(dir)
	if err != nil {
		return nil, err
	}
	defer root.Close()
	text, err := root.ReadFile("snapshot.json", maxSnapshotBytes)
	if err != nil {
		return nil, err
	}
	s := &snapshot.Snapshot{Dir: dir}
	return s, json.Unmarshal(text, s)
}

// ValidateSnapshot returns an error if a snapshot contains invalid names.
func ValidateSnapshot(s *snapshot.Snapshot, id, key string) error {
	if s.ID != id || s.Site != key {
		return fmt.Errorf("it is recorded as %q of %q", s.ID, s.Site)
	}
	for _, n := range s.Nodes {
		if n.Record == nil || !check.ValidLabel(n.Record.Name) || n.Record.ID <= 0 {
			return errors.New("a node in it has no name")
		}
	}
	for _, v := range s.Volumes {
		if !check.ValidFileName(v.Name) || v.Node != volume.SharedDir && !check.ValidLabel(v.Node) {
			return vault.InvalidName("volume", v.Name)
		}
	}
	for _, text := range append([]string{s.Who}, s.Omitted...) {
		if sanitize.Line(text) != text {
			return vault.InvalidName("text", text)
		}
	}
	return nil
}

// snapshots returns an error if a staged snapshot cannot be moved to its place.
func (r *Restore) snapshots() error {
	return r.eachSnapshot(func(_ string, s *snapshot.Snapshot) error {
		if to := filepath.Join(r.Dirs.Snapshots(r.Key), s.ID); tree.Exists(to) && !r.Replace {
			return problem.New(problem.Refused, "snapshot %s of %s already exists; nothing was done", s.ID, r.Key).At(to).
				Try("remove it with orrery snapshot rm %s, or use --replace", s.ID)
		}
		return nil
	})
}

// PlaceSnapshots moves snapshots to their place. Everything specific to a host is replaced by that of
// this host, as in the nodes that were just created. Nodes that were not restored are removed from
// them.
func (r *Part) PlaceSnapshots(engines map[string]engine.Engine) error {
	return r.eachSnapshot(func(staged string, s *snapshot.Snapshot) error {
		if err := r.adaptSnapshot(s, engines); err != nil {
			return err
		}
		if err := host.WriteJSON(filepath.Join(staged, "snapshot.json"), 0o600, s); err != nil {
			return err
		}
		return move{From: staged, To: filepath.Join(r.Dirs.Snapshots(r.Key), s.ID)}.apply(r.Replace)
	})
}

func (l Layout) adaptSnapshot(s *snapshot.Snapshot, engines map[string]engine.Engine) error {
	var nodes []snapshot.Node
	used := map[string]string{} // paths of volumes on this host, by their directories in the snapshot
	for _, n := range s.Nodes {
		here, err := nodedir.Of(l.Dirs, l.Key, n.Record.ID).Read()
		if errors.Is(err, os.ErrNotExist) || err == nil && here.Name != n.Record.Name {
			continue
		}
		if err != nil {
			return err
		}
		for _, m := range here.Mounts {
			if m.From().Left == "" && m.Copy == "" {
				kept := snapshot.Volume{Name: m.Volume, Node: here.Name}
				if m.Shared {
					kept.Node = volume.SharedDir
				}
				used[s.VolumeDir(kept)] = volume.Path(l.Dirs, l.Key, here.Name, m)
			}
		}
		if layered, ok := engines[here.Engine].(engine.Layered); ok && tree.Exists(s.PrivateDir(here.ID)) {
			if err := copyHostFiles(layered.Private(engine.RefOf(&here.Node)), s.PrivateDir(here.ID)); err != nil {
				return err
			}
		}
		n.Record, n.Memory = asInSnapshot(here, n.Record), false
		nodes = append(nodes, n)
	}
	s.Nodes = nodes
	for i := range s.Left {
		s.Left[i] = sanitize.Line(s.Left[i])
	}
	var volumes []snapshot.Volume
	for _, v := range s.Volumes {
		if at, ok := used[s.VolumeDir(v)]; ok {
			v.Path = at
			volumes = append(volumes, v)
		}
	}
	s.Volumes = volumes
	return nil
}

// asInSnapshot returns a node as the site file makes it here, with the layers and configuration that it
// had in the snapshot.
func asInSnapshot(here, then *nodedir.Record) *nodedir.Record {
	r := *here
	r.Base, r.Layer, r.Parts, r.Config = then.Base, then.Layer, then.Parts, then.Config
	r.Configured, r.Active = then.Configured, then.Active
	return &r
}
