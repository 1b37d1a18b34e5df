package remote

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"sync/atomic"
	"time"

	"orrery/internal/apply"
	"orrery/internal/host/doctor"
	"orrery/internal/host/path"
	"orrery/internal/problem"
	"orrery/internal/strict/jsonlimit"
	"orrery/internal/text/sanitize"
	"orrery/internal/transport/rpc"
)

// How often a helper is asked for a sign of life, and how long nothing may come from it: a
// connection that stalls is given up within ten seconds.
const (
	keepAliveInterval = 2 * time.Second
	keepAliveTimeout  = 7 * time.Second
)

// A Link is a connection to a helper.
type Link struct {
	Greeting
	// how far the clock over there is ahead of ours, and half of the time that asking took may be
	// added or taken away
	Skew time.Duration
	Took time.Duration // the time that asking took

	name   string
	client *rpc.Client
	notice atomic.Pointer[func(text string)] // of hosts that are waited for
	why    func(error) error
}

// Open greets the helper of a host that is called so. Why explains the end of the connection; it is
// given what is known of it at this end.
func Open(ctx context.Context, name string, conn io.ReadWriteCloser, version string, why func(error) error) (*Link,
	error) {
	greeted, cancel := context.WithTimeoutCause(ctx, greetTimeout,
		fmt.Errorf("it has not greeted within %v", greetTimeout))
	defer cancel()
	client, err := rpc.Open(greeted, conn)
	if err != nil {
		var p *problem.Problem
		if errors.As(err, &p) && p.Cure != "" {
			return nil, other(name, "", version).Because(p.Err)
		}
		return nil, why(err)
	}
	client.Demand(keepAliveInterval, keepAliveTimeout)
	l := &Link{name: name, client: client, why: why}
	asked := time.Now()
	if l.Greeting, err = greetMethod.ask(ctx, l, place{}, none{}, nil); err != nil {
		_ = client.Close()
		return nil, err
	}
	l.Took = time.Since(asked)
	l.Skew = l.Time.Sub(asked.Add(l.Took / 2))
	if l.Version != version {
		_ = client.Close()
		return nil, other(name, l.Version, version)
	}
	return l, nil
}

// other says that a helper is of another version, which happens where the program of another
// architecture is another's.
func other(name, actual, version string) *problem.Problem {
	p := problem.New(problem.Unable, "host %s: the helper there is of another version than this program, which is %s",
		name, version)
	if actual != "" {
		p = problem.New(problem.Unable, "host %s: the helper there is of version %s, and this program of %s", name, actual,
			version)
	}
	return p.Try("put the program of its architecture beside this one, of one build (make dist)")
}

// Close ends the connection, and with it all that is under way over there.
func (l *Link) Close() { _ = l.client.Close() }

// Inspect returns what the host has that nodes need.
func (l *Link) Inspect(ctx context.Context) (facts doctor.Facts, err error) {
	return inspectMethod.ask(ctx, l, place{}, none{}, nil)
}

var inspectMethod = method[none, doctor.Facts]{
	name: "facts", traits: traits{abandoned: true},
	answer: func(_ context.Context, c *received, _ none) (doctor.Facts, error) {
		return c.helper.machine.Inspect(), nil
	},
}

// Try returns, for each way from the host to another, the size of the largest packet that came back from
// there: no larger than what was asked for, whatever the host says.
func (l *Link) Try(ctx context.Context, ways []path.Way) (sizes []int, err error) {
	if sizes, err = pathsMethod.ask(ctx, l, place{}, ways, nil); err == nil && len(sizes) != len(ways) {
		err = problem.New(problem.Failed, "host %s: it was asked for %d ways, and tells of %d", l.name, len(ways), len(sizes))
	}
	for i := range sizes {
		if err == nil {
			sizes[i] = max(0, min(sizes[i], ways[i].Size))
		}
	}
	return sizes, err
}

var pathsMethod = method[[]path.Way, []int]{
	name: "ways", traits: traits{long: true, abandoned: true},
	answer: func(ctx context.Context, c *received, ways []path.Way) ([]int, error) {
		return c.helper.machine.Try(ctx, ways[:min(len(ways), maxWays)]), nil
	},
}

// maxWays is how many ways to other hosts one question may be about.
const maxWays = 1024

// Outfit installs on the host what nodes of some engines need, and says what is done there.
func (l *Link) Outfit(ctx context.Context, engines []string, say func(string)) (packages []string, err error) {
	return outfitMethod.ask(ctx, l, place{}, engines, func(_ *rpc.Talk, w *word) error {
		say(sanitize.Line(w.Detail))
		return nil
	})
}

var outfitMethod = method[[]string, []string]{
	name: "outfit", traits: traits{long: true, displayed: true},
	answer: func(ctx context.Context, c *received, engines []string) ([]string, error) {
		return c.helper.machine.Outfit(ctx, engines, c.detail)
	},
}

// result hears a talk to its end.
func (t *talk) result(ctx context.Context, hear func(*rpc.Talk, *word) error, into any) error {
	if !t.displayed {
		t.reminded()
	}
	for {
		w, err := t.hear(ctx)
		switch {
		case err != nil:
			return err
		case w.Fault != nil:
			return t.link.there(w.Fault.err())
		case w.Result != nil:
			if into == nil {
				return nil
			}
			return t.link.read(w.Result, into)
		case hear == nil:
			continue
		}
		if err := hear(t.Talk, w); err != nil {
			return err
		}
	}
}

// read decodes what a helper has answered.
func (l *Link) read(text []byte, into any) error {
	if err := jsonlimit.Unmarshal(text, into); err != nil {
		return problem.New(problem.Surprise, "host %s: its answer cannot be read", l.name).Because(err).
			Try("look at that host: its helper does not keep to the protocol; --without %s leaves it out", l.name)
	}
	return nil
}

// there says of a problem at which host it is: a path, such as that of a lock, does not say on which.
func (l *Link) there(err error) error {
	for _, p := range problem.All(err) {
		switch {
		case p.Where == "":
			p.Where = "host " + l.name
		case filepath.IsAbs(p.Where):
			p.Where = "host " + l.name + ": " + p.Where
		}
	}
	return err
}

// ErrLost is of all errors that come from the end of a connection.
var ErrLost = errors.New("the connection to the host has ended")

// gone is the end of a connection.
type gone struct{ error }

func (g gone) Unwrap() error        { return g.error }
func (g gone) Is(target error) bool { return target == ErrLost } //nolint:errorlint // it is what errors.Is asks

// lost explains an error of the connection.
func (l *Link) lost(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if why := l.explained(); why != nil {
		return why
	}
	return l.there(err)
}

// unlessLost returns an error, or why the connection has ended if that caused the error.
func (l *Link) unlessLost(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	if why := l.explained(); why != nil {
		return why
	}
	return err
}

// Host returns the host as a site with this key has it, which gets the values of secrets from here.
func (l *Link) Host(key string, secrets apply.Secrets) apply.Host {
	f := &far{Link: l, at: place{Host: l.name, Key: key}, secrets: secrets}
	return apply.Host{
		Runs: runHost{f}, State: stateHost{f}, Nodes: nodeHost{f}, Releases: releaseHost{f}, Layers: layerHost{f},
		Volumes:   volumeHost{f},
		Snapshots: snapshotHost{f}, Backups: backupHost{f}, Twins: twinHost{f}, Secrets: secretHost{f},
		Transfers: transferHost{f},
	}
}
