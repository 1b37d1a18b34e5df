package apply

import (
	"context"
	"slices"

	"orrery/internal/observe"
)

// Records are the release records of the hosts of a fleet: which releases are live, and which
// operation is under way.
type Records struct{ fleet *Fleet }

// Records returns the release records of the fleet.
func (f *Fleet) Records() Records { return Records{f} }

// all returns the record of each host.
func (rs Records) all(ctx context.Context) ([]observe.Releases, error) {
	all := make([]observe.Releases, len(rs.fleet.All))
	return all, rs.fleet.ForEach(func(i int, h *HostClient) (err error) {
		all[i], err = h.Releases.Read(ctx)
		return err
	})
}

// maxReads limits how often contradicting records are read again.
const maxReads = 5

// agreed returns the record that is valid for all hosts. A caller without the lock may read the
// record of one host before another process changes it and that of the next host afterwards. So
// agreed reads records that contradict each other again until they no longer change.
func (rs Records) agreed(ctx context.Context) (observe.Agreement, error) {
	var before []observe.ReleaseReport
	for range maxReads {
		reports, err := rs.reports(ctx)
		if err != nil {
			return observe.Agreement{}, err
		}
		agreement, err := rs.agree(reports)
		if err == nil || sameStates(reports, before) {
			return agreement, err
		}
		before = reports
	}
	return rs.agree(before)
}

// sameStates reports whether all hosts have the same records as in earlier reports.
func sameStates(reports, earlier []observe.ReleaseReport) bool {
	return slices.EqualFunc(reports, earlier, func(r, e observe.ReleaseReport) bool { return r.State() == e.State() })
}

// reports returns the record of each host and, if the records differ, what decides which is valid.
func (rs Records) reports(ctx context.Context) ([]observe.ReleaseReport, error) {
	all, err := rs.all(ctx)
	if err != nil {
		return nil, err
	}
	reports := make([]observe.ReleaseReport, len(all))
	for i := range all {
		reports[i] = observe.ReleaseReport{Host: rs.fleet.All[i].Name, Releases: all[i]}
	}
	if slices.ContainsFunc(reports, func(r observe.ReleaseReport) bool { return r.State() != reports[0].State() }) {
		// the nodes matter only if the records differ
		err = rs.ask(ctx, reports)
	}
	return reports, err
}

// ask asks the hosts for what decides whose record is valid.
func (rs Records) ask(ctx context.Context, words []observe.ReleaseReport) error {
	return rs.fleet.ForEach(func(i int, h *HostClient) error {
		nodes, err := h.Nodes.List(ctx)
		if err != nil {
			return err
		}
		words[i].Live = live(nodes)
		part, err := h.Backups.Restoring(ctx)
		words[i].Restoring = part != nil && part.Going
		return err
	})
}

// live returns the releases of the live nodes of a host, by node name.
func live(nodes []observe.Node) map[string]int {
	all := map[string]int{}
	for i := range nodes {
		if n := &nodes[i]; !n.Staged {
			all[n.Name] = n.Release
		}
	}
	return all
}

func (rs Records) agree(words []observe.ReleaseReport) (observe.Agreement, error) {
	if len(words) == 1 {
		return observe.Agreement{Releases: words[0].Releases}, nil
	}
	return observe.Agree(words, observe.OwnerOf(rs.fleet.Site().Nodes, words, len(rs.fleet.Unknown) > 0))
}

// Read returns which releases are live, according to the records of all hosts. It returns an error
// if they contradict each other.
func (rs Records) Read(ctx context.Context) (observe.Releases, error) {
	agreed, err := rs.agreed(ctx)
	return agreed.Releases, err
}

// Write records on all hosts which releases are live. The record gets one name, later than those on
// all hosts. If a host is lost before it gets the record, the others know that its record is older.
// Write goes on when ctx ends, so that no host is left behind.
func (rs Records) Write(ctx context.Context, r observe.Releases) error {
	ctx = context.WithoutCancel(ctx)
	if len(rs.fleet.All) == 1 {
		return rs.fleet.All[0].Releases.Write(ctx, r)
	}
	r, err := rs.Name(ctx, r)
	if err != nil {
		return err
	}
	return rs.fleet.ForEach(func(_ int, h *HostClient) error { return h.Releases.Copy(ctx, r) })
}

// Name returns a record under the name that follows those on all hosts.
func (rs Records) Name(ctx context.Context, r observe.Releases) (observe.Releases, error) {
	all, err := rs.all(ctx)
	return r.SuccessorOf(observe.MergeIdentities(all)), err
}

// align puts the record that is valid for all hosts into the observed hosts. Sync will make it so
// before anything is done.
func (rs Records) align(ctx context.Context, hosts []observe.Host) error {
	if len(rs.fleet.All) < 2 {
		return nil
	}
	words := make([]observe.ReleaseReport, len(rs.fleet.All))
	for i := range words {
		words[i] = observe.ReleaseReport{Host: rs.fleet.All[i].Name, Releases: hosts[i].Releases, Live: live(hosts[i].Nodes),
			Restoring: hosts[i].Restoring != nil && hosts[i].Restoring.Going}
	}
	agreed, err := rs.agree(words)
	if err != nil { // another process may have changed them while the hosts were observed
		agreed, err = rs.agreed(ctx)
	}
	if err != nil {
		return err
	}
	for i := range words {
		agreed.Staged = words[i].Staged
		hosts[i].Releases = agreed.Releases
	}
	return nil
}

// Sync copies the valid record to the hosts that are behind. It also sends all hosts the copies of
// site directories of the releases that are live or were live before. Only the holder of the lock
// may call it. It returns the names of the hosts that were behind. Left is the error if a host did
// not get a copy of a site directory. This is no reason to stop, because another host has the copy.
func (rs Records) Sync(ctx context.Context) (late []string, left, err error) {
	if len(rs.fleet.All) < 2 {
		return nil, nil, nil
	}
	agreed, err := rs.agreed(ctx)
	if err != nil {
		return nil, nil, err
	}
	for _, why := range agreed.Why {
		rs.fleet.warn("%s", why)
	}
	if agreed.New {
		if err := rs.Write(ctx, agreed.Releases); err != nil {
			return nil, nil, err
		}
		agreed.Behind = nil
	}
	left = rs.fleet.Editions().Spread(ctx, agreed.Needed())
	for _, i := range agreed.Behind {
		if err := rs.fleet.All[i].Releases.Copy(ctx, agreed.Releases); err != nil {
			return late, left, err
		}
		late = append(late, rs.fleet.All[i].Name)
	}
	return late, left, nil
}

// AtConnect returns which releases are live according to the record when the hosts were reached. It
// saves one request to remote hosts. It is for callers that only display something right after
// connecting.
func (rs Records) AtConnect(ctx context.Context) (observe.Releases, error) {
	if rs.fleet.Reached != nil {
		return *rs.fleet.Reached, nil
	}
	return rs.Read(ctx)
}
