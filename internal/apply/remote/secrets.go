package remote

import (
	"context"
	"errors"
	"sync"

	"orrery/internal/secret"
	"orrery/internal/site/spec"
	"orrery/internal/wire"
)

// borrowed are the secrets of a site at the helper: whoever asked for the step is asked for each, once, and they stay in memory as long as the helper does, so that logs do not show them.
type borrowed struct {
	*secret.Keyring
	mutex  sync.Mutex
	values map[string]string
}

// Value gives the value of a secret.
func (b *borrowed) Value(ctx context.Context, name string) (string, error) {
	b.mutex.Lock()
	v, has := b.values[name]
	b.mutex.Unlock()
	if has {
		return v, nil
	}
	g, err := ask(ctx, want{Secret: name})
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

// Text gives a file that has secrets in it.
func (b *borrowed) Text(ctx context.Context, t spec.SecretText) ([]byte, error) {
	g, err := ask(ctx, want{Text: &t})
	if err != nil {
		return nil, err
	}
	b.keep(g.Known)
	return g.Value, nil
}

// keep lets values not be shown.
func (b *borrowed) keep(known map[string]string) {
	for name, value := range known {
		b.Keep(name, value)
	}
}

type askingKey struct{}

// An asker asks the caller of a step, one question after the other.
type asker struct {
	mutex sync.Mutex
	with  *wire.Caller
}

// asking lets what is done within a context ask the caller.
func asking(ctx context.Context, with *wire.Caller) context.Context {
	return context.WithValue(ctx, askingKey{}, &asker{with: with})
}

func ask(ctx context.Context, what want) (g given, err error) {
	a, ok := ctx.Value(askingKey{}).(*asker)
	if !ok {
		return g, errors.New("nobody can be asked for a secret")
	}
	a.mutex.Lock()
	defer a.mutex.Unlock()
	if err := a.with.Say(word{Want: &what}); err != nil {
		return g, err
	}
	if err := a.with.Hear(&g); err != nil {
		return g, err
	}
	return g, g.Fault.err()
}
