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

// keepAliveInterval is how often a helper is asked for a sign of life. keepAliveTimeout is how long
// nothing may arrive from it. A stalled connection is given up within ten seconds.
const (
	keepAliveInterval = 2 * time.Second
	keepAliveTimeout  = 7 * time.Second
)

// A Link is a connection to a helper.
type Link struct {
	Greeting
	// how far the remote host's clock is ahead of ours, with an error of at most half of Took
	Skew time.Duration
	Took time.Duration // duration of the request for the time

	name   string
	client *rpc.Client
	notice atomic.Pointer[func(text string)] // called with the name of a host that is being waited for
	why    func(error) error
}

// Open exchanges greetings with the helper of the host called name. Why explains the end of the
// connection; its argument is the error seen at this end.
func Open(ctx context.Context, name string, conn io.ReadWriteCloser, version string, why func(error) error) (*Link,
	error) {
	greeted, cancel := context.WithTimeoutCause(ctx, greetTimeout,
		fmt.Errorf("it sent no greeting within %v", greetTimeout))
	defer cancel()
	client, err := rpc.NewClient(greeted, conn)
	if err != nil {
		var p *problem.Problem
		if errors.As(err, &p) && p.Cure != "" {
			return nil, versionProblem(name, "", version).Because(p.Err)
		}
		return nil, why(err)
	}
	client.SetKeepAlive(keepAliveInterval, keepAliveTimeout)
	l := &Link{name: name, client: client, why: why}
	asked := time.Now()
	if l.Greeting, err = greetMethod.ask(ctx, l, callTarget{}, none{}, nil); err != nil {
		_ = client.Close()
		return nil, err
	}
	l.Took = time.Since(asked)
	l.Skew = l.Time.Sub(asked.Add(l.Took / 2))
	if l.Version != version {
		_ = client.Close()
		return nil, versionProblem(name, l.Version, version)
	}
	return l, nil
}

// versionProblem returns the problem that a helper has another version. This happens if the program for the
// versionProblem architecture comes from another build.
func versionProblem(name, actual, version string) *problem.Problem {
	p := problem.New(problem.Unable, "host %s: the helper there is of another version than this program, which is %s",
		name, version)
	if actual != "" {
		p = problem.New(problem.Unable, "host %s: the helper there is of version %s, and this program of %s", name, actual,
			version)
	}
	return p.Try("put the program of its architecture beside this one, of one build (make dist)")
}

// Close ends the connection, and with it everything in progress on the remote host.
func (l *Link) Close() { _ = l.client.Close() }

// Inspect returns which of the things that nodes need the host has.
func (l *Link) Inspect(ctx context.Context) (facts doctor.Facts, err error) {
	return inspectMethod.ask(ctx, l, callTarget{}, none{}, nil)
}

var inspectMethod = method[none, doctor.Facts]{
	name: "facts", callOptions: callOptions{abandoned: true},
	answer: func(_ context.Context, c *serverCall, _ none) (doctor.Facts, error) {
		return c.helper.machine.Inspect(), nil
	},
}

// Try returns, for each path from the host to another, the size of the largest packet that came
// back. A size is at most the requested one, whatever the host reports.
func (l *Link) Try(ctx context.Context, ways []path.Route) (sizes []int, err error) {
	if sizes, err = pathsMethod.ask(ctx, l, callTarget{}, ways, nil); err == nil && len(sizes) != len(ways) {
		err = problem.New(problem.Failed, "host %s: %d paths were requested, %d were reported", l.name, len(ways), len(sizes))
	}
	for i := range sizes {
		if err == nil {
			sizes[i] = max(0, min(sizes[i], ways[i].Size))
		}
	}
	return sizes, err
}

var pathsMethod = method[[]path.Route, []int]{
	name: "ways", callOptions: callOptions{long: true, abandoned: true},
	answer: func(ctx context.Context, c *serverCall, ways []path.Route) ([]int, error) {
		return c.helper.machine.Try(ctx, ways[:min(len(ways), maxWays)]), nil
	},
}

// maxWays limits how many paths to other hosts one request may contain.
const maxWays = 1024

// Outfit installs on the host what nodes of the given engines need, and reports what it does.
func (l *Link) Outfit(ctx context.Context, engines []string, say func(string)) (packages []string, err error) {
	return outfitMethod.ask(ctx, l, callTarget{}, engines, func(_ *rpc.Stream, w *response) error {
		say(sanitize.Line(w.Detail))
		return nil
	})
}

var outfitMethod = method[[]string, []string]{
	name: "outfit", callOptions: callOptions{long: true, displayed: true},
	answer: func(ctx context.Context, c *serverCall, engines []string) ([]string, error) {
		return c.helper.machine.Outfit(ctx, engines, c.detail)
	},
}

// result reads messages until the call ends.
func (t *clientCall) result(ctx context.Context, hear func(*rpc.Stream, *response) error, into any) error {
	if !t.displayed {
		t.startReminder()
	}
	for {
		w, err := t.recv(ctx)
		switch {
		case err != nil:
			return err
		case w.Fault != nil:
			return t.link.withHostName(w.Fault.toError())
		case w.Result != nil:
			if into == nil {
				return nil
			}
			return t.link.read(w.Result, into)
		case hear == nil:
			continue
		}
		if err := hear(t.Stream, w); err != nil {
			return err
		}
	}
}

// read decodes the answer of a helper.
func (l *Link) read(text []byte, into any) error {
	if err := jsonlimit.Unmarshal(text, into); err != nil {
		return problem.New(problem.Surprise, "host %s: its answer is invalid", l.name).Because(err).
			Try("its helper violates the protocol: look at that host; --without %s leaves it out", l.name)
	}
	return nil
}

// withHostName adds the name of the host to a problem: a path, such as that of a lock, does not say on
// which host it is.
func (l *Link) withHostName(err error) error {
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

// ErrLost matches all errors that come from the end of a connection.
var ErrLost = errors.New("the connection to the host has ended")

// lostError is the error for the end of a connection.
type lostError struct{ error }

func (g lostError) Unwrap() error        { return g.error }
func (g lostError) Is(target error) bool { return target == ErrLost } //nolint:errorlint // it is what errors.Is asks

// lost explains an error of the connection.
func (l *Link) lost(err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	if why := l.lossReason(); why != nil {
		return why
	}
	return l.withHostName(err)
}

// lossOr returns why the connection has ended if that caused the error, else the error itself.
func (l *Link) lossOr(ctx context.Context, err error) error {
	if err == nil || ctx.Err() != nil {
		return err
	}
	if why := l.lossReason(); why != nil {
		return why
	}
	return err
}

// Host returns the host with the site that has this key. It gets the values of secrets from the
// argument.
func (l *Link) Host(key string, secrets apply.Secrets) apply.Host {
	f := &remoteHost{Link: l, at: callTarget{Host: l.name, Key: key}, secrets: secrets}
	return apply.Host{
		Runs: runHost{f}, State: stateHost{f}, Nodes: nodeHost{f}, Releases: releaseHost{f}, Layers: layerHost{f},
		Volumes:   volumeHost{f},
		Snapshots: snapshotHost{f}, Backups: backupHost{f}, Twins: twinHost{f}, Secrets: secretHost{f},
		Transfers: transferHost{f},
	}
}
