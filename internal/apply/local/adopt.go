package local

import (
	"context"

	"orrery/internal/apply"
	"orrery/internal/engine"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/site/spec"
	"orrery/internal/volume"
)

// Adoptions returns the directories that a node would take over from another node on this machine.
func (h volumeHost) Adoptions(ctx context.Context, of apply.AdoptRequest) ([]apply.Adoption, error) {
	all, nodes, err := h.heritage(ctx, of)
	if err != nil {
		return nil, err
	}
	adoptions := make([]apply.Adoption, len(all))
	for i, v := range all {
		adoptions[i] = apply.Adoption{Volume: v.Volume, As: v.As, Users: h.users(nodes, v)}
	}
	return adoptions, nil
}

func (h volumeHost) heritage(ctx context.Context, of apply.AdoptRequest) ([]volume.Adoption, []observe.Node, error) {
	all, err := volume.Adoptions(h.Dirs, h.Key, of.Former, &of.Heir, of.Named)
	if err != nil {
		return nil, nil, err
	}
	nodes, err := nodeHost{h.SiteState}.List(ctx)
	return all, nodes, err
}

// users returns the running nodes that use the volume.
func (h volumeHost) users(nodes []observe.Node, v volume.Adoption) (names []string) {
	for i := range nodes {
		n := &nodes[i]
		if n.State != observe.Stopped && len(volume.Writers(h.Dirs, h.Key, []*spec.Node{&n.Node}, v.From, v.To)) > 0 {
			names = append(names, n.Name)
		}
	}
	return names
}

// Adopt moves a former node's volumes to its heir.
func (h volumeHost) Adopt(ctx context.Context, of apply.AdoptRequest) (done []apply.AdoptResult, err error) {
	all, nodes, err := h.heritage(ctx, of)
	if err != nil {
		return nil, err
	}
	for _, v := range all {
		if users := h.users(nodes, v); len(users) > 0 {
			return nil, apply.InUse(users[0], v.As)
		}
	}
	for i := range nodes {
		if n := &nodes[i]; n.Name == of.Heir.Name && !n.Staged {
			// the heir gets other data than it was configured with, so its roles must be applied
			// again
			e, err := h.engine(&n.Node)
			if err != nil {
				return nil, err
			}
			progress := engine.Progress{Config: n.Config, Active: n.Active}
			if err := e.SetProgress(ctx, engine.RefOf(&n.Node), progress); err != nil {
				return nil, err
			}
		}
	}
	for _, v := range all {
		kept, err := v.Adopt()
		if err != nil {
			return done, problem.New(problem.Failed, "volume %s of %s was not given to %s", v.Volume, of.Former, of.Heir.Name).
				Because(err)
		}
		done = append(done, apply.AdoptResult{Volume: v.Volume, To: v.To, Kept: kept})
	}
	return done, nil
}
