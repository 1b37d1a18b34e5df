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

// Adoptions gives what a node is to take over here from another.
func (p *Place) Adoptions(ctx context.Context, of apply.Heritage) ([]apply.Adoption, error) {
	all, nodes, err := p.heritage(ctx, of)
	if err != nil {
		return nil, err
	}
	adoptions := make([]apply.Adoption, len(all))
	for i, v := range all {
		adoptions[i] = apply.Adoption{Volume: v.Volume, As: v.As, Users: p.users(nodes, v)}
	}
	return adoptions, nil
}

func (p *Place) heritage(ctx context.Context, of apply.Heritage) ([]volume.Adoption, []observe.Node, error) {
	all, err := volume.Adoptions(p.Dirs, p.Key, of.Former, &of.Heir, of.Named)
	if err != nil {
		return nil, nil, err
	}
	nodes, err := p.Nodes(ctx)
	return all, nodes, err
}

// users gives the nodes that run and use what changes hands.
func (p *Place) users(nodes []observe.Node, v volume.Adoption) (names []string) {
	for i := range nodes {
		n := &nodes[i]
		if n.State != observe.Stopped && len(volume.Users(p.Dirs, p.Key, []*spec.Node{&n.Node}, v.From, v.To)) > 0 {
			names = append(names, n.Name)
		}
	}
	return names
}

// AdoptVolumes gives a node what was another's.
func (p *Place) AdoptVolumes(ctx context.Context, of apply.Heritage) (done []apply.Adopted, err error) {
	all, nodes, err := p.heritage(ctx, of)
	if err != nil {
		return nil, err
	}
	for _, v := range all {
		if users := p.users(nodes, v); len(users) > 0 {
			return nil, apply.InUse(users[0], v.As)
		}
	}
	for i := range nodes {
		if n := &nodes[i]; n.Name == of.Heir.Name && !n.Staged { // from before it has other data: roles prepare what they find
			e, err := p.engine(&n.Node)
			if err != nil {
				return nil, err
			}
			if err := e.Mark(ctx, engine.RefOf(&n.Node), engine.Mark{Config: n.Config, Active: n.Active}); err != nil {
				return nil, err
			}
		}
	}
	for _, v := range all {
		kept, err := v.Adopt()
		if err != nil {
			return done, problem.New(problem.Failed, "volume %s of %s was not given to %s", v.Volume, of.Former, of.Heir.Name).Because(err)
		}
		done = append(done, apply.Adopted{Volume: v.Volume, To: v.To, Kept: kept})
	}
	return done, nil
}
