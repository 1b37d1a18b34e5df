package sites

import (
	"context"
	"fmt"
	"maps"
	"slices"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/control/secrets"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/rotation"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/secretspec"
	"orrery/internal/text/humanize"
)

// Rotate starts the next generation of a secret and applies the roles that read it, as Up does on the
// nodes with these roles. If some node still has an older generation, Rotate only finishes that. If each node
// has its own value, Rotate replaces those of all nodes, or only that of the node called node if it is not "".
func Rotate(ctx context.Context, c *control.Session, s *site.Site, secret, node string) (*apply.Result, error) {
	x, ok := s.Secret(secret)
	if !ok {
		var names []string
		for _, x := range s.Secrets {
			names = append(names, x.Name)
		}
		return nil, problem.New(problem.Usage, "no secret is called %q", secret).
			Try("%s", problem.SuggestOr(secret, names, "orrery secret ls lists the secrets"))
	}
	if node != "" && x.Per != secretspec.PerNode {
		return nil, problem.New(problem.Usage, "secret %s has one value for all nodes", secret).
			Try(`per = "node" in [secret.%s] gives each node its own; orrery secret rotate %s replaces the value everywhere`,
				secret, secret)
	}
	if node != "" && !secretspec.Reads(s, node, secret) {
		var names []string
		for _, n := range secretspec.Readers(s, secret) {
			names = append(names, n.Name)
		}
		return nil, problem.New(problem.Usage, "no node called %q reads secret %s", node, secret).
			Try("%s", problem.SuggestOr(node, names, "orrery secret ls lists the roles that read it"))
	}
	r, _, err := Up(ctx, c, s, nil, UpOptions{rotate: x, rotateOn: node})
	return r, err
}

// rotations are the secrets of which a run of up starts a new generation.
type rotations struct {
	raised map[string]bool // by the name under which hosts store them
	files  *secrets.Files
	seen   []observe.Host
	due    map[string]string // why secrets need new values, by the same name
}

// planRotations returns the secrets whose files have changed, and those of single nodes that need new values.
func planRotations(ctx context.Context, c *control.Session, s *site.Site, f *apply.Fleet, seen []observe.Host,
	also *site.Secret) (*rotations, error) {
	current, err := rotation.Observed(seen, nil)
	if err != nil && also != nil { // the hosts may differ about the secret that is rotated
		rotated := map[string]bool{}
		for _, stored := range secretspec.Names(s, also) {
			rotated[stored] = true
		}
		current, err = rotation.Observed(seen, rotated)
	}
	if err != nil {
		return nil, err
	}
	files, err := secrets.Compare(c.Dirs, s, current)
	if err != nil {
		return nil, err
	}
	due, err := f.SecretKeeper().Due(ctx, s, seen)
	if err != nil {
		return nil, err
	}
	raised := maps.Clone(files.Changed)
	for _, stored := range slices.Sorted(maps.Keys(due)) {
		switch name, node := secretspec.Split(stored); {
		case node != "":
			raised[stored] = true
		case also == nil || also.Name != name: // a host must not have a secret of other hosts' nodes rotated
			return nil, problem.New(problem.Surprise, "secret %s must be rotated: %s", name, due[stored]).
				Try("orrery secret rotate %s makes a new value", name)
		}
	}
	return &rotations{raised: raised, files: files, seen: seen, due: due}, nil
}

// warnings returns which secrets of single nodes a plan renews or deletes, and why.
func (r *rotations) warnings(f *apply.Fleet, p *plan.Plan) (all []string) {
	if p.Empty() {
		return nil
	}
	for _, stored := range f.SecretKeeper().Undeclared() {
		name, node := secretspec.Split(stored)
		if slices.ContainsFunc(p.Steps, func(s *plan.Step) bool { return s.Kind == plan.DestroyNode && s.Subject == node }) {
			all = append(all, fmt.Sprintf("node %s is removed, and its own value of secret %s is deleted", node, name))
		}
	}
	for _, stored := range slices.Sorted(maps.Keys(r.due)) {
		if name, node := secretspec.Split(stored); node != "" && r.raised[stored] {
			all = append(all, fmt.Sprintf("secret %s of node %s is renewed: %s", name, node, r.due[stored]))
		}
	}
	return all
}

// add decides whether the rotation of a secret, on one node if only is not "", starts a new generation or
// finishes the current one. It returns the nodes to which that applies.
func (r *rotations) add(f *apply.Fleet, s *site.Site, x *site.Secret, only string) (map[string]bool, error) {
	if len(f.Unknown) > 0 {
		return nil, problem.New(problem.Unable, "secret %s cannot be rotated without %s, which may keep the old value",
			x.Name, humanize.List(f.Unknown, 12)).Try("bring it back")
	}
	live, err := f.Views().Released(s, r.seen)
	if err != nil {
		return nil, err
	}
	current, err := rotation.Observed(r.seen, nil)
	interrupted := err != nil
	nodes, rotated := map[string]bool{}, map[string]bool{}
	behind, unusable := false, false
	for _, reader := range secrets.Readers(f, live, r.seen, x.Name) {
		if only != "" && reader.Name != only {
			continue
		}
		if reader.Runs() || reader.Autostart { // one that was stopped gets the value when it is started
			stored := secretspec.Name(x, reader.Name)
			nodes[reader.Name], rotated[stored] = true, true
			behind = behind || !reader.Has(stored, current.Of(stored))
			unusable = unusable || r.due[stored] != ""
		}
	}
	switch {
	case len(nodes) == 0:
		return nil, problem.New(problem.Usage, "no node that is up reads secret %s", x.Name).
			Try("orrery up brings up the nodes that read it")
	case interrupted:
		maps.Copy(r.raised, rotated)
	case behind && !unusable:
	case x.File != "" && !r.raised[x.Name]:
		return nil, problem.New(problem.Usage, "secret %s is the content of a file, which has not changed", x.Name).At(x.File).
			Try("change the file, then run orrery up")
	default:
		maps.Copy(r.raised, rotated)
	}
	maps.DeleteFunc(r.raised, func(stored string, _ bool) bool { return !rotated[stored] })
	return nodes, nil
}

// begin makes the hosts store the new generations, before any node gets one.
func (r *rotations) begin(ctx context.Context, f *apply.Fleet, s *site.Site) error {
	if err := r.files.Store(); err != nil {
		return err
	}
	next, err := rotation.Observed(r.seen, r.raised)
	if err != nil {
		return err
	}
	for _, stored := range slices.Sorted(maps.Keys(r.raised)) {
		name, node := secretspec.Split(stored)
		x, ok := s.Secret(name)
		if !ok {
			continue
		}
		if err := f.SecretKeeper().Rotate(ctx, x, node, next.Of(stored)); err != nil {
			return err
		}
		if err := r.files.Raise(stored, next.Of(stored)); err != nil {
			return err
		}
	}
	return nil
}
