package status

import (
	"context"

	"orrery/internal/apply"
	"orrery/internal/control/unattended"
	"orrery/internal/observe/drill"
	"orrery/internal/site"
)

// Drills returns the last drill of each service of a site that had one, by the records of the hosts that answer.
// A record that cannot be read is the error of a host; the others count.
func Drills(ctx context.Context, s *site.Site, f *apply.Fleet) (all []drill.Result, err error) {
	for i := range s.Services {
		name := s.Services[i].Name
		latest, unread := unattended.LatestRoutine(ctx, f, drill.RecordName(name))
		if unread != nil {
			err = unread
		}
		if last, ok := drill.Parse(latest.Made); ok && last.Service == name {
			all = append(all, last)
		}
	}
	return all, err
}
