package remote

import (
	"context"
	"errors"
	"maps"
	"path/filepath"
	"slices"
	"sync"

	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/secret"
	"orrery/internal/site/spec"
	"orrery/internal/transport/rpc"
)

// Read returns the host's copy of a generated secret. The value is checked, because the host may
// send anything, and nodes of other hosts will use it.
func (f secretHost) Read(ctx context.Context, name string) (none secret.Stored, err error) {
	s, err := secretMethod.call(ctx, f.remoteHost, name)
	if err != nil {
		return none, err
	}
	if !secret.ValidGenerated(s.Value) || !secret.ValidGeneration(s.Generation) {
		return none, problem.New(problem.Surprise,
			"host %s has an invalid value of the generated secret %s: values have letters, digits and \"+/=-\", at most 16384",
			f.at.Host, name).
			Try("remove sites/%s/secrets/%s from its state directory, if it is kept on another host; --without %s leaves it out until then",
				f.at.Key, name, f.at.Host)
	}
	return s, nil
}

// Store stores a generated secret on the remote host.
func (f secretHost) Store(ctx context.Context, name string, s secret.Stored) error {
	_, err := storeSecretMethod.call(ctx, f.remoteHost, namedSecret{name, s})
	return err
}

// Replace stores a new generation of a secret on the remote host.
func (f secretHost) Replace(ctx context.Context, name string, s secret.Stored) error {
	_, err := replaceSecretMethod.call(ctx, f.remoteHost, namedSecret{name, s})
	return err
}

// Remove removes the remote host's copy of a secret.
func (f secretHost) Remove(ctx context.Context, name string) error {
	_, err := removeSecretMethod.call(ctx, f.remoteHost, name)
	return err
}

var secretMethod = method[string, secret.Stored]{
	name: "secret", callOptions: callOptions{abandoned: true},
	answer: func(ctx context.Context, c *serverCall, name string) (secret.Stored, error) {
		return c.host().Secrets.Read(ctx, name)
	},
}

// A namedSecret is a secret in a message.
type namedSecret struct {
	Name string `json:"name"`
	secret.Stored
}

var storeSecretMethod = method[namedSecret, none]{
	name: "keep secret",
	answer: func(ctx context.Context, c *serverCall, s namedSecret) (none, error) {
		return none{}, c.host().Secrets.Store(ctx, s.Name, s.Stored)
	},
}

var replaceSecretMethod = method[namedSecret, none]{
	name: "replace secret",
	answer: func(ctx context.Context, c *serverCall, s namedSecret) (none, error) {
		c.host().secrets.drop(s.Name)
		return none{}, c.host().Secrets.Replace(ctx, s.Name, s.Stored)
	},
}

var removeSecretMethod = method[string, none]{
	name: "remove secret",
	answer: func(ctx context.Context, c *serverCall, name string) (none, error) {
		c.host().secrets.drop(name)
		return none{}, c.host().Secrets.Remove(ctx, name)
	},
}

// resolveSecret returns what a step refers to, and nothing else: a host may know only the secrets that its
// nodes need.
func (f *remoteHost) resolveSecret(ctx context.Context, s *plan.Step, w *secretRequest) secretReply {
	var g secretReply
	var err error
	needs := needed(s.Duties)
	switch {
	case w.Text != nil && !refersTo(s.Duties, *w.Text), w.Text == nil && !needs[w.Secret]:
		err = problem.New(problem.Unable, "the helper requested a secret that none of its steps needs")
	case w.Text != nil:
		g.Value, err = f.secrets.Text(ctx, *w.Text)
	default:
		var v string
		v, err = f.secrets.Value(ctx, w.Secret)
		g.Value = []byte(v)
	}
	g.Known, g.Fault = f.secrets.Fetched(), toWireError(markControlHost(err))
	maps.DeleteFunc(g.Known, func(name, _ string) bool { return !needs[name] })
	return g
}

// markControlHost marks files in an error as files of the control host, because the error comes back as one of
// the remote host.
func markControlHost(err error) error {
	for _, p := range problem.All(err) {
		if filepath.IsAbs(p.Where) {
			p.Where = "control host: " + p.Where
		}
	}
	return err
}

// needed returns the names under which hosts store the secrets that roles need.
func needed(d *spec.RoleActions) map[string]bool {
	all := map[string]bool{}
	if d == nil {
		return all
	}
	for i := range d.Roles {
		for _, use := range d.Roles[i].Secrets {
			all[d.StoredSecret(use.Name)] = true
		}
	}
	return all
}

// refersTo reports whether the roles of a node install this file.
func refersTo(d *spec.RoleActions, t spec.SecretText) bool {
	return d != nil && t.Node == d.Node && t.Release == d.Release &&
		slices.ContainsFunc(d.Roles, func(r spec.RoleAction) bool {
			return r.Name == t.Role && slices.ContainsFunc(r.Rendered,
				func(f spec.RenderedFile) bool { return f.Secret && f.Path == t.Path })
		})
}

// secretProxy is the secrets of a site at the helper. The helper requests each once from the caller of
// the step, and keeps it in memory until the helper ends. So logs do not show it.
type secretProxy struct {
	*secret.Keyring
	mutex  sync.Mutex
	values map[string]string
}

// Value returns the value of a secret.
func (b *secretProxy) Value(ctx context.Context, name string) (string, error) {
	b.mutex.Lock()
	v, ok := b.values[name]
	b.mutex.Unlock()
	if ok {
		return v, nil
	}
	g, err := ask(ctx, secretRequest{Secret: name})
	if err != nil {
		return "", err
	}
	b.keep(g.Known)
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if b.values == nil {
		b.values = map[string]string{}
	}
	b.values[name] = string(g.Value)
	return string(g.Value), nil
}

// drop makes the helper request a value again, because it is replaced or removed.
func (b *secretProxy) drop(name string) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	delete(b.values, name)
}

// Text returns a file that contains secrets.
func (b *secretProxy) Text(ctx context.Context, t spec.SecretText) ([]byte, error) {
	g, err := ask(ctx, secretRequest{Text: &t})
	if err != nil {
		return nil, err
	}
	b.keep(g.Known)
	return g.Value, nil
}

// keep records values that must not be displayed.
func (b *secretProxy) keep(known map[string]string) {
	for name, value := range known {
		b.Add(name, value)
	}
}

type requesterKey struct{}

// An secretRequester sends requests to the caller of a step, one at a time.
type secretRequester struct {
	mutex sync.Mutex
	with  *rpc.ServerStream
}

// withRequester returns a context whose users can send requests to the caller.
func withRequester(ctx context.Context, with *rpc.ServerStream) context.Context {
	return context.WithValue(ctx, requesterKey{}, &secretRequester{with: with})
}

func ask(ctx context.Context, what secretRequest) (g secretReply, err error) {
	a, ok := ctx.Value(requesterKey{}).(*secretRequester)
	if !ok {
		return g, errors.New("no connection to ask for a secret")
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if err := a.with.Send(response{Want: &what}); err != nil {
		return g, err
	}
	if err := a.with.Recv(&g); err != nil {
		return g, err
	}
	return g, g.Fault.toError()
}
