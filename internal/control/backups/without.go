package backups

import (
	"context"
	"maps"
	"slices"

	"orrery/internal/control/hosts"
	"orrery/internal/observe"
	"orrery/internal/problem"
	"orrery/internal/text/humanize"
)

// If a host is left out, a restore restores only nodes that are certainly on the other hosts: nodes
// that exist there. All other nodes may be on the missing host. Creating them again would give
// their addresses to two nodes.

// excludeNodes excludes nodes that may be on a host that is left out. It returns an error if an existing
// node on the other hosts could not be restored, because existing nodes are taken down first.
func (r *restoreRun) excludeNodes(ctx context.Context, seen []observe.Host) error {
	if len(r.fleet.Unknown) == 0 {
		return nil
	}
	if err := r.checkSameReleases(ctx); err != nil {
		return err
	}
	silent := humanize.List(r.fleet.Unknown, 12)
	present, nodes := observe.HostsByNode(seen, r.site.Stage), nodeNames(r.manifest)
	var stay []string
	for _, name := range slices.Sorted(maps.Keys(present)) {
		if _, answers := r.fleet.Host(r.homes.nodes[name]); !answers || !slices.Contains(nodes, name) {
			stay = append(stay, name)
		}
	}
	if len(stay) > 0 {
		return problem.New(problem.Refused,
			"while %s is left out, nodes that cannot be created again must not be destroyed; these are not in the backup or belong to other hosts: %s; nothing was done",
			silent, humanize.List(stay, 12)).At(r.title).
			Try("restore single nodes with --node NAME --replace, or the site when all hosts answer")
	}
	for _, name := range nodes {
		if len(present[name]) == 0 {
			delete(r.homes.nodes, name)
			r.spared = append(r.spared, name)
		}
	}
	if len(r.spared) == len(nodes) {
		return problem.New(problem.Refused,
			"no node of the backup is on a host that answers, and nodes that may be on %s are not created; nothing was done", silent).
			At(r.title).
			Try("bring %s back; %s", silent, hosts.RemoveFromSiteHint)
	}
	if len(r.spared) > 0 {
		r.notice("not restored, because they may be on %s, whose state is unknown: %s (when it is back: --node NAME --replace)",
			silent, humanize.List(r.spared, 12))
	}
	return nil
}

// checkSameReleases returns an error if the backup would restore other releases than those that are
// live. A host that is left out would still have the live ones.
func (r *restoreRun) checkSameReleases(ctx context.Context) error {
	now, err := r.fleet.Records().Read(ctx)
	if err != nil {
		return err
	}
	then, err := r.manifest.ReadReleases()
	if err != nil {
		return err
	}
	if maps.Equal(now.Active, then.Active) && now.Trial == nil {
		return nil
	}
	silent := humanize.List(r.fleet.Unknown, 12)
	return problem.New(problem.Refused,
		"the live releases have changed since the backup, or one is on trial, and %s would keep them; nothing was done",
		silent).At(r.title).
		Try("restore the site when all hosts answer; %s", hosts.RemoveFromSiteHint)
}
