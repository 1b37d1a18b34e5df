package rehearsals

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/control"
	"orrery/internal/host/cgroup"
	"orrery/internal/observe"
	"orrery/internal/rehearsal"
	"orrery/internal/site"
)

// WitnessVerb is the verb by which hosts in a rehearsal observe nodes.
const WitnessVerb = "witness"

// witnessesPerHost is how many nodes of a host observe others. More would see the same.
const witnessesPerHost = 2

// Witness makes nodes of a site on this host observe other nodes. It reads these targets as JSON.
// At intervals it writes what was seen so far, until the input ends.
func Witness(ctx context.Context, c *control.Session, key string, in io.Reader, out io.Writer) error {
	from, to := json.NewDecoder(in), json.NewEncoder(out)
	var targets []rehearsal.Target
	if err := from.Decode(&targets); err != nil {
		return err
	}
	f, err := c.HostsWithoutReleases(ctx, &site.Site{Name: key})
	if err != nil {
		return err
	}
	nodes, err := f.All[0].Nodes.List(ctx)
	if err != nil {
		return err
	}
	ctx, end := context.WithCancel(ctx)
	defer end()
	seen := rehearsal.HostView{}
	var all []*rehearsal.Prober
	for i := range nodes {
		n := &nodes[i]
		if n.Staged || n.State != observe.Running {
			continue
		}
		seen.Nodes = append(seen.Nodes, n.Name)
		if len(all) == witnessesPerHost {
			continue
		}
		w, err := witness(key, n, targets)
		if err != nil {
			return err
		}
		if w != nil {
			all = append(all, w)
			go w.Run(ctx)
		}
	}
	if seen.Host, err = os.Hostname(); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(io.Discard, in)
		end()
	}()
	tick := time.NewTicker(rehearsal.OutageThreshold)
	defer tick.Stop()
	for ended := false; !ended; {
		select {
		case <-ctx.Done():
			ended = true
		case <-tick.C:
		}
		seen.Views = nil
		for _, w := range all {
			seen.Views = append(seen.Views, w.Views()...)
		}
		if err := to.Encode(seen); err != nil {
			return err
		}
	}
	return nil
}

// witness starts observing from a node. It returns nil if the node has no network namespace on the
// host, for example because it is a virtual machine.
func witness(key string, n *observe.Node, targets []rehearsal.Target) (*rehearsal.Prober, error) {
	for _, pid := range cgroup.OfNode(key, n.ID).Processes() {
		space, err := os.Open(fmt.Sprintf("/proc/%d/ns/net", pid))
		if err != nil {
			continue // the process has ended
		}
		defer space.Close() //nolint:errcheck // it was only read
		if own, err := isOwnNamespace(space); err != nil || own {
			continue
		}
		return rehearsal.NewProber(space, n.Name, targets)
	}
	return nil, nil
}

// isOwnNamespace reports whether a network namespace is that of this process.
func isOwnNamespace(space *os.File) (bool, error) {
	var its, own unix.Stat_t
	if err := unix.Fstat(int(space.Fd()), &its); err != nil {
		return false, err
	}
	err := unix.Stat("/proc/self/ns/net", &own)
	return its.Ino == own.Ino && its.Dev == own.Dev, err
}
