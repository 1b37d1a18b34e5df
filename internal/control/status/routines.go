package status

import (
	"context"
	"time"

	"orrery/internal/apply"
	"orrery/internal/control/unattended"
	"orrery/internal/observe/routine"
	"orrery/internal/site"
)

// A Routine is how the last backup, snapshot or watch went that the site file asks for.
type Routine struct {
	Name string `json:"routine"` // one of the names of package routine
	routine.Record
	Next time.Time `json:"next,omitzero"` // when the next one is due, or zero if now or only on occasions
	Late bool      `json:"late,omitempty"`
}

// lateAfter is how long after its time a routine must have begun.
const lateAfter = time.Hour

// Routines returns how what the site file schedules went, by the records of the hosts that answer. A
// record that cannot be read is the error of a host; the others count.
func Routines(ctx context.Context, s *site.Site, f *apply.Fleet) (all []Routine, err error) {
	for _, r := range []struct {
		name     string
		when     site.Schedule
		declared bool
	}{
		{routine.Backup, s.Backup.Schedule, s.Backup.To != ""},
		{routine.Snapshot, s.Snapshot, s.Snapshot.Keep > 0},
		{routine.Watch, site.Schedule{}, s.Watch.Every > 0},
	} {
		if !r.declared {
			continue
		}
		latest, unread := unattended.LatestRoutine(ctx, f, r.name)
		if unread != nil {
			err = unread
		}
		one, now := Routine{Name: r.name, Record: latest}, time.Now()
		if r.when.Every > 0 {
			one.Next = r.when.Next(one.Done)
			one.Late = !one.Done.IsZero() && one.Failures == 0 && now.After(one.Next.Add(lateAfter)) &&
				now.After(one.Begun.Add(r.when.Every))
		}
		all = append(all, one)
	}
	return all, err
}
