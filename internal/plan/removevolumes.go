package plan

import (
	"orrery/internal/observe"
	"orrery/internal/plan/orphan"
	"orrery/internal/site"
)

// RemoveVolumes plans the removal of volumes that no node uses, with their data.
func RemoveVolumes(s *site.Site, hosts []observe.Host, gone []orphan.Orphan) *Plan {
	d := newPlanBuilder(s, hosts, Goal{})
	for _, o := range gone {
		d.add(Step{Kind: RemoveVolume, Host: o.Host, Subject: volumeTitle(o.Volume, o.Node), Reason: "no node uses it",
			Path: o.Path})
	}
	return d.sorted()
}

// volumeTitle returns the name of a node's volume, or of one that nodes share, for messages.
func volumeTitle(volume, node string) string {
	if node == "" {
		return volume
	}
	return volume + " of " + node
}
