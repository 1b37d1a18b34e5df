package sites

import (
	"context"
	"maps"
	"slices"

	"orrery/internal/apply"
	"orrery/internal/control"
	"orrery/internal/control/secrets"
	"orrery/internal/observe"
	"orrery/internal/plan/rotation"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/text/humanize"
)

// Rotate starts the next generation of a secret and applies the roles that read it, as Up does on the
// nodes with these roles. If some node still has an older generation, Rotate only finishes that.
func Rotate(ctx context.Context, c *control.Session, s *site.Site, secret string) (*apply.Result, error) {
	x, ok := s.Secret(secret)
	if !ok {
		var names []string
		for _, x := range s.Secrets {
			names = append(names, x.Name)
		}
		return nil, problem.New(problem.Usage, "no secret is called %q", secret).
			Try("%s", problem.SuggestOr(secret, names, "orrery secret ls lists the secrets"))
	}
	r, _, err := Up(ctx, c, s, nil, UpOptions{rotate: x})
	return r, err
}

// rotations are the secrets of which a run of up starts a new generation.
type rotations struct {
	raised map[string]bool
	files  *secrets.Files
	seen   []observe.Host
}

// planRotations returns the secrets whose files have changed.
func planRotations(c *control.Session, s *site.Site, seen []observe.Host, also *site.Secret) (*rotations, error) {
	current, err := rotation.Observed(seen, nil)
	if err != nil && also != nil { // the hosts may differ about the secret that is rotated
		current, err = rotation.Observed(seen, map[string]bool{also.Name: true})
	}
	if err != nil {
		return nil, err
	}
	files, err := secrets.Compare(c.Dirs, s, current)
	if err != nil {
		return nil, err
	}
	return &rotations{raised: files.Changed, files: files, seen: seen}, nil
}

// add decides whether the rotation of a secret starts a new generation or finishes the current one. It
// returns the nodes to which that applies.
func (r *rotations) add(f *apply.Fleet, s *site.Site, x *site.Secret) (map[string]bool, error) {
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
	nodes, behind := map[string]bool{}, false
	for _, reader := range secrets.Readers(f, live, r.seen, x.Name) {
		if reader.Runs() || reader.Autostart { // one that was stopped gets the value when it is started
			nodes[reader.Name] = true
			behind = behind || !reader.Has(x.Name, current.Of(x.Name))
		}
	}
	switch {
	case len(nodes) == 0:
		return nil, problem.New(problem.Usage, "no node that is up reads secret %s", x.Name).
			Try("orrery up brings up the nodes that read it")
	case interrupted:
		r.raised[x.Name] = true
	case behind:
	case x.File != "" && !r.raised[x.Name]:
		return nil, problem.New(problem.Usage, "secret %s is the content of a file, which has not changed", x.Name).At(x.File).
			Try("change the file, then run orrery up")
	default:
		r.raised[x.Name] = true
	}
	maps.DeleteFunc(r.raised, func(name string, _ bool) bool { return name != x.Name })
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
	for _, name := range slices.Sorted(maps.Keys(r.raised)) {
		x, ok := s.Secret(name)
		if !ok {
			continue
		}
		if err := f.Rotate(ctx, x, next.Of(name)); err != nil {
			return err
		}
		if err := r.files.Raise(name, next.Of(name)); err != nil {
			return err
		}
	}
	return nil
}
