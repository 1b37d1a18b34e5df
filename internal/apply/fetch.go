package apply

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"sync"
	"time"

	"orrery/internal/image"
	"orrery/internal/plan"
	"orrery/internal/problem"
	"orrery/internal/text/humanize"
	"orrery/internal/tree"
)

// layerFetches is the set of layers that the hosts of a fleet fetch in one run.
type layerFetches struct {
	mutex sync.Mutex
	all   map[string]*fetch // by host and digest
}

// fetch is the state of a layer that one host fetches.
type fetch struct {
	begun, ended chan struct{}
	err          error // valid once ended is closed
}

// of returns the state of a layer that a host fetches or will fetch.
func (t *layerFetches) of(host, digest string) *fetch {
	t.mutex.Lock()
	defer t.mutex.Unlock()
	key := host + " " + digest
	if t.all == nil {
		t.all = map[string]*fetch{}
	}
	if t.all[key] == nil {
		t.all[key] = &fetch{begun: make(chan struct{}), ended: make(chan struct{})}
	}
	return t.all[key]
}

// fetchStartTimeout is how long a host waits for another host to start fetching a layer that it can pass on.
const fetchStartTimeout = 3 * time.Second

// underway reports whether the fetch has started and has not failed.
func (t *fetch) underway(ctx context.Context) bool {
	select {
	case <-t.begun:
	case <-time.After(fetchStartTimeout):
		return false
	case <-ctx.Done():
		return false
	}
	select {
	case <-t.ended:
		return t.err == nil
	default:
		return true
	}
}

// fetch makes the host fetch a layer from the hosts that have it. If none of them sends the right
// content, the host builds the layer itself.
func (h *HostClient) fetch(ctx context.Context, s *plan.Step, say func(string)) (err error) {
	mine := h.fleet.fetches.of(h.Name, s.Layer.Digest)
	close(mine.begun)
	defer func() {
		mine.err = err
		close(mine.ended)
	}()
	content, givers, err := h.trustedContent(ctx, s)
	if err == nil {
		names := make([]string, len(givers))
		if s.After != "" && h.fleet.fetches.of(s.After, s.Layer.Digest).underway(ctx) {
			for i := range givers {
				// host s.After passes on what it receives, so that the hosts that have the whole
				// layer need not send it to every other host
				givers[i].Reserve = true
			}
			givers = slices.DeleteFunc(givers, func(g LayerSource) bool { return g.Host == s.After })
			givers = append([]LayerSource{{Host: s.After}}, givers...)
			names = make([]string, len(givers))
		}
		for i, g := range givers {
			names[i] = g.Host
		}
		err = h.fleet.RunTransfer(ctx, Transfer{Layer: &LayerTransfer{s.Layer, content, givers}}, h, names, say)
	}
	if err == nil || ctx.Err() != nil || errors.Is(err, context.Canceled) || problem.ExitCode(err) == int(problem.Unable) {
		return err
	}
	say("could not be fetched and is being built here: " + err.Error())
	build := *s
	build.Kind = plan.BuildLayer
	failed := h.build(ctx, &build, say)
	if failed == nil {
		h.fleet.warn("host %s built layer %s, because it could not be fetched: %v", h.Name, s.Layer.Title, err)
	}
	return failed
}

// Warn notes that a host sent invalid data, or none.
func (p *transferRun) Warn(text string) {
	p.fleet.warn("host %s: receiving from other hosts: %s", p.to.Name, tree.DisplayPath(text))
}

// trustedContent asks the hosts that have a layer for its content digest, and decides which digest is trusted
// (decision 42). It trusts the control host if it has the layer, else the majority, else the first
// host in the site. Hosts that report another digest are noted and not asked to send.
func (h *HostClient) trustedContent(ctx context.Context, s *plan.Step) (content string, from []LayerSource, err error) {
	type said struct {
		host  *HostClient
		word  image.ContentInfo
		wrong error
	}
	var all []*said
	for _, one := range h.fleet.All { // in the order of the site
		if slices.Contains(s.Sources, one.Name) && one.Name != h.Name {
			all = append(all, &said{host: one})
		}
	}
	var asks sync.WaitGroup
	for _, one := range all {
		asks.Go(func() { one.word, one.wrong = one.host.Layers.ContentInfo(ctx, s.Layer.Digest) })
	}
	asks.Wait()
	var words []string
	own := -1
	for _, one := range all {
		switch {
		case errors.Is(one.wrong, fs.ErrNotExist):
		case one.wrong != nil:
			err = errors.Join(err, one.wrong)
		default:
			if one.host.Local() {
				own = len(words)
			}
			words = append(words, one.word.Content)
		}
	}
	content = image.TrustedDigest(words, own)
	var others []string
	for _, one := range all {
		switch {
		case one.wrong != nil:
		case one.word.Content == content:
			from = append(from, LayerSource{Host: one.host.Name})
		default:
			others = append(others, one.host.Name)
		}
	}
	if len(others) > 0 {
		h.fleet.warn("layer %s differs between hosts: the copy of %s is used, not that of %s",
			s.Layer.Title, humanize.List(hostsOf(from), 12), humanize.List(others, 12))
	}
	if len(from) == 0 {
		return "", nil, errors.Join(fmt.Errorf("layer %[2]s is no longer on any of %[1]s", humanize.List(s.Sources, 12), s.Layer.Title),
			err)
	}
	return content, from, nil
}

func hostsOf(all []LayerSource) (names []string) {
	for _, g := range all {
		names = append(names, g.Host)
	}
	return names
}
