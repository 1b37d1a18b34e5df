package backup

import (
	"context"
	"slices"

	"orrery/internal/backup/vault"
	"orrery/internal/engine"
	"orrery/internal/engine/nodedir"
	"orrery/internal/site/spec"
	"orrery/internal/volume"
)

// Writers returns the running nodes that write to what is backed up: the nodes of the set, and all
// that share a volume with one of them.
func (s *Selection) Writers(ctx context.Context) ([]*spec.Node, error) {
	sources, nodes, _, err := s.sources()
	if err != nil {
		return nil, err
	}
	running, err := engine.Running(ctx, s.Engines, s.Site.Key())
	if err != nil {
		return nil, err
	}
	var dirs []string
	for _, source := range sources {
		if source.Tree.Kind == vault.VolumeTree {
			dirs = append(dirs, source.Dir)
		}
	}
	users := volume.Writers(s.Dirs, s.Site.Key(), running, dirs...)
	for _, n := range running {
		kept := slices.ContainsFunc(nodes, func(r nodedir.Record) bool { return r.ID == n.ID })
		if kept && !slices.Contains(users, n) {
			users = append(users, n)
		}
	}
	return users, nil
}
