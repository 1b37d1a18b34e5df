package apply

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/site"
	"orrery/internal/site/sitefile"
)

// A Fleet is the hosts of a site.
type Fleet struct {
	All     []*HostClient // in the order in which they are declared
	Unknown []string      // hosts whose state is unknown, because they were left out

	Reached *observe.Releases // the record when the hosts were reached, or nil if it was not read

	Lock    *sitefile.Lock // releases.lock of the site directory on this machine, or nil
	LockErr error          // why Lock is nil: the file cannot be read, or there is no directory

	withheld map[int]error // why live releases are not used, by number

	fetches layerFetches
	mutex   sync.Mutex
	doubts  []string
	origin  string // id of the site that hosts must have on record, or "" to keep what they have
}

// SingleHost returns the fleet of one host.
func SingleHost(h *HostClient) *Fleet { return &Fleet{All: []*HostClient{h}} }

// ForEach calls do for all hosts concurrently, and joins the errors.
func (f *Fleet) ForEach(do func(i int, h *HostClient) error) error {
	if len(f.All) == 1 {
		return do(0, f.All[0]) // a goroutine would cost more than many of the calls on this host
	}
	errs := make([]error, len(f.All))
	var all sync.WaitGroup
	for i, h := range f.All {
		all.Go(func() { errs[i] = do(i, h) })
	}
	all.Wait()
	return errors.Join(errs...)
}

// Host returns the host called name, or false.
func (f *Fleet) Host(name string) (*HostClient, bool) {
	i := slices.IndexFunc(f.All, func(h *HostClient) bool { return h.Name == name })
	if i < 0 {
		return nil, false
	}
	return f.All[i], true
}

// LockAll takes the site's lock on all hosts. It goes through them in the order of their names, so
// that of two concurrent callers one gets all locks.
func (f *Fleet) LockAll(ctx context.Context, by host.Holder) (letGo func(), err error) {
	var held []func()
	letGo = func() {
		for _, one := range slices.Backward(held) {
			one()
		}
	}
	for _, h := range slices.SortedFunc(slices.Values(f.All),
		func(a, b *HostClient) int { return strings.Compare(a.Name, b.Name) }) {
		one, err := h.Runs.Lock(ctx, by)
		if err != nil {
			letGo()
			return nil, err
		}
		held = append(held, one)
	}
	return letGo, nil
}

// InvalidateLive makes all hosts read again which releases are live.
func (f *Fleet) InvalidateLive() {
	for _, h := range f.All {
		h.invalidateLive()
	}
}

// Sweep stops and removes on all hosts what killed runs left behind.
func (f *Fleet) Sweep(ctx context.Context) error {
	return f.ForEach(func(_ int, h *HostClient) error { return h.Runs.Sweep(ctx) })
}

// Observe returns what exists of the site on each host. Hosts that were left out are included and
// marked unknown.
func (f *Fleet) Observe(ctx context.Context) ([]observe.Host, error) {
	hosts := make([]observe.Host, len(f.All), len(f.All)+len(f.Unknown))
	var needs []string // the same for all hosts
	if len(f.All) > 0 {
		needs = f.All[0].needs()
	}
	err := f.ForEach(func(i int, h *HostClient) (err error) {
		hosts[i], err = h.State.Observe(ctx, needs)
		hosts[i].Name, hosts[i].Unknown = h.Name, false // a host does not decide its own name
		if err == nil && len(f.All)+len(f.Unknown) > 1 {
			err = h.FetchPublicKey(ctx, &hosts[i])
		}
		return err
	})
	if err == nil {
		err = f.checkOwner(hosts)
	}
	if err == nil {
		err = f.Records().align(ctx, hosts)
	}
	for _, name := range f.Unknown {
		hosts = append(hosts, observe.Host{Name: name, Unknown: true})
	}
	recordLocations(f, hosts)
	for i, h := range f.All {
		if err == nil {
			err = checkGenerations(h, &hosts[i]) // only the locations tell which host may report a node's secrets
		}
	}
	return hosts, err
}

// recordLocations records on which hosts nodes were seen.
func recordLocations(f *Fleet, hosts []observe.Host) {
	if len(f.All) > 0 {
		f.All[0].packer.SetObservedHomes(observe.HostByNode(hosts, f.Site().Stage)) // all hosts share the packer
	}
}

// DiscardUndo removes what was kept for undoing these steps.
func (f *Fleet) DiscardUndo(ctx context.Context, done []*plan.Step) error {
	return f.ForEach(func(_ int, h *HostClient) error {
		return h.Runs.DiscardUndo(ctx, slices.DeleteFunc(slices.Clone(done),
			func(s *plan.Step) bool { return s.Host != h.Name }))
	})
}

// LastDuration returns how long a similar step took last time, or 0 if unknown.
func (f *Fleet) LastDuration(ctx context.Context, s *plan.Step) (time.Duration, error) {
	if h, ok := f.Host(s.Host); ok {
		return h.Runs.LastDuration(ctx, s)
	}
	return 0, nil
}

// Redact hides the values of secrets.
func (f *Fleet) Redact(text string) string {
	for _, h := range f.All {
		text = h.Secrets.Redact(text)
	}
	return text
}

// StartRun prepares the fleet for carrying out a plan. It returns the workers by the names of their
// hosts.
func (f *Fleet) StartRun() map[string]Worker {
	all := map[string]Worker{}
	moving := &nodeMoves{sent: map[int]string{}, given: map[int]string{}, apart: map[[2]string]bool{}}
	f.fetches = layerFetches{}
	for _, h := range f.All {
		h.fleet = f
		all[h.Name] = moveWorker{h, f, moving}
	}
	return all
}

// warn notes something that the user should know although nothing has failed.
func (f *Fleet) warn(format string, args ...any) {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	f.doubts = append(f.doubts, fmt.Sprintf(format, args...))
}

// Warnings returns what was noted since the last call.
func (f *Fleet) Warnings() []string {
	f.mutex.Lock()
	defer f.mutex.Unlock()
	all := f.doubts
	f.doubts = nil
	return all
}

// Site returns the site, or nil if there are no hosts. All hosts share it.
func (f *Fleet) Site() *site.Site {
	if len(f.All) == 0 {
		return nil
	}
	return f.All[0].Site()
}

// Names returns the names of the hosts.
func (f *Fleet) Names() (names []string) {
	for _, h := range f.All {
		names = append(names, h.Name)
	}
	return names
}
