package apply

import (
	"context"
	"errors"
	"io"
	"path/filepath"

	"orrery/internal/problem"
	"orrery/internal/text/humanize"
	"orrery/internal/tree"
	"orrery/internal/treesync"
	"orrery/internal/treesync/sitearchive"
)

// Hosts keep the copies of the site directory from which releases were staged. Any host may send
// something else instead. A copy is used, and passed on to other hosts, only if its digest is the
// one in releases.lock (decision 57). That file is in the site directory on the control host.

// Editions are the copies of site directories on all hosts of a fleet.
type Editions struct{ fleet *Fleet }

// Editions returns the copies of site directories on the hosts of the fleet.
func (f *Fleet) Editions() Editions { return Editions{f} }

// locked returns the digest that the copy of a release must have, or "" if releases.lock has none.
func (es Editions) locked(release int) (string, error) {
	if es.fleet.Lock == nil {
		return "", es.fleet.LockErr
	}
	return es.fleet.Lock.Digest(es.fleet.Site().Twin, release), nil
}

// Fetch stores the copy of a release in dir, which must be empty. It takes the copy from the first
// host that sends one with the digest in releases.lock.
func (es Editions) Fetch(ctx context.Context, release int, dir string) error {
	digest, err := es.locked(release)
	if err != nil {
		return err
	}
	all, err := es.Digests(ctx, release)
	if err != nil {
		return err
	}
	keepers := keepersOf(all, release, digest)
	if len(keepers) == 0 {
		return es.unproven(all, release, digest)
	}
	var wrong error
	for _, i := range keepers {
		came, err := es.fleet.All[i].CopyEdition(ctx, release, dir)
		if err == nil && came != digest {
			err = EditionMismatch(es.fleet.All[i].Name, release)
			err = errors.Join(err, removeCopy(dir))
		}
		if err == nil || ctx.Err() != nil {
			return err
		}
		wrong = errors.Join(wrong, err)
	}
	return wrong
}

// CopyEdition stores the copy of a release that the host sends in dir, which must be empty, and
// returns its digest. If the copy cannot be read, dir is empty again afterwards.
func (h *HostClient) CopyEdition(ctx context.Context, release int, dir string) (digest string, err error) {
	var silent error // the host's error, if it could not send
	err = treesync.Pipe(ctx, func(rw io.ReadWriter) (err error) {
		digest, err = sitearchive.Receive(ctx, rw, dir)
		return err
	}, func(rw io.ReadWriter) error {
		silent = h.Releases.SendEdition(ctx, release, rw)
		return silent
	})
	if err != nil && silent != nil && errors.Is(err, silent) {
		return "", errors.Join(err, removeCopy(dir))
	}
	if err != nil {
		err = problem.New(problem.Failed, "the copy of the site directory of release %d on host %s cannot be read", release,
			h.Name).Because(err).
			Try("stage the release again under another number")
		return "", errors.Join(err, removeCopy(dir))
	}
	return digest, nil
}

// removeCopy removes the unpacked files of a copy.
func removeCopy(dir string) error {
	err := tree.RemoveAll(filepath.Join(dir, sitearchive.Site))
	return errors.Join(err, tree.RemoveAll(filepath.Join(dir, sitearchive.Record)))
}

// Digests returns, for each host, the digests that it reports for its copies of the given releases,
// or "" for a copy that cannot be read.
func (es Editions) Digests(ctx context.Context, of ...int) ([]map[int]string, error) {
	all := make([]map[int]string, len(es.fleet.All))
	return all, es.fleet.ForEach(func(i int, h *HostClient) (err error) {
		all[i], err = h.Releases.Editions(ctx, of)
		return err
	})
}

// keepersOf returns the indexes of the hosts that report a copy of the release with this digest.
func keepersOf(all []map[int]string, release int, digest string) (keepers []int) {
	for i := range all {
		if kept := all[i][release]; kept != "" && kept == digest {
			keepers = append(keepers, i)
		}
	}
	return keepers
}

// unproven returns the error that explains why no copy of a release is used.
func (es Editions) unproven(all []map[int]string, release int, digest string) error {
	var keep, unread []string
	for i := range all {
		switch kept, ok := all[i][release]; {
		case ok && kept == "":
			unread = append(unread, es.fleet.All[i].Name)
		case ok:
			keep = append(keep, es.fleet.All[i].Name)
		}
	}
	const update = "if it was staged from another checkout of the site directory, bring this one up to date; else orrery release trust %d shows what the hosts keep, and accepts it"
	switch {
	case len(keep)+len(unread) == 0:
		return problem.New(problem.Mistake, "release %d of site %s was not staged on any host that answers", release,
			es.fleet.Site().Key()).
			Try("orrery stage --release %d, or bring back the host that has it", release)
	case len(keep) == 0:
		return problem.New(problem.Failed,
			"the copy of the site directory of release %d on host %s cannot be read, and no other host that answers has one",
			release, unread[0]).
			Try("look at releases/%d of the site on that host; or stage the release again under another number", release)
	case digest == "":
		return problem.New(problem.Refused,
			"release %d is not in it, so the copy of that release on %s cannot be verified", release,
			humanize.List(keep, 12)).
			At(es.fleet.Lock.Path()).Try(update, release)
	}
	return problem.New(problem.Refused, "the copy of release %d on %s does not have the digest that is recorded in it",
		release, humanize.List(keep, 12)).
		At(es.fleet.Lock.Path()).Try(update+"; or stage it again under another number", release)
}

// EditionMismatch returns the error for a host that sent another copy than the one it reported.
func EditionMismatch(host string, release int) error {
	return problem.New(problem.Surprise,
		"host %s sent another copy of the site directory of release %d than it reported", host, release).
		Try("look at releases/%d of the site on that host; --without %s leaves it out until then", release, host)
}

// Spread sends the copies of releases to the hosts that lack them or keep something else, so that
// no copy is lost with a single host.
func (es Editions) Spread(ctx context.Context, releases []int) error {
	if len(releases) == 0 {
		return nil
	}
	all, err := es.Digests(ctx, releases...)
	if err != nil {
		return err
	}
	var left error
	for _, release := range releases {
		left = errors.Join(left, es.spread(ctx, all, release))
	}
	return left
}

// spread does so for one release. If no host has a copy, it returns nil: the caller that needs the
// copy reports it.
func (es Editions) spread(ctx context.Context, all []map[int]string, release int) error {
	digest, err := es.locked(release)
	if err != nil {
		return err
	}
	keepers := keepersOf(all, release, digest)
	if len(keepers) == 0 {
		if err := es.unproven(all, release, digest); !problem.Is(err, problem.Mistake) {
			return err
		}
		return nil
	}
	var left error
	for i := range all {
		if all[i][release] == digest {
			continue
		}
		if err := es.send(ctx, keepers, es.fleet.All[i], release, digest); err != nil {
			left = errors.Join(left, err)
		} else if all[i][release] != "" {
			es.fleet.warn("host %s had a copy of release %d that differs from releases.lock; it was replaced",
				es.fleet.All[i].Name, release)
		}
	}
	return left
}

// send sends a copy to a host, from the first of the keepers that has the right one.
func (es Editions) send(ctx context.Context, keepers []int, to *HostClient, release int, digest string) (wrong error) {
	for _, i := range keepers {
		err := copyEdition(ctx, es.fleet.All[i], to, release, digest)
		if err == nil || ctx.Err() != nil {
			return err
		}
		wrong = errors.Join(wrong, err)
	}
	return wrong
}

func copyEdition(ctx context.Context, from, to *HostClient, release int, digest string) error {
	return treesync.Pipe(ctx, func(rw io.ReadWriter) error { return to.Releases.KeepEdition(ctx, release, digest, rw) },
		func(rw io.ReadWriter) error { return from.Releases.SendEdition(ctx, release, rw) })
}
