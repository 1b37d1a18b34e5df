package check

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/event"
	"orrery/internal/text/pattern"
)

// maxKeep is the maximum number of results that a schedule keeps.
const maxKeep = 10_000

// ageKey matches a public key of age.
var ageKey = pattern.New(`^age1[02-9ac-hj-np-z]{58}$`)

func checkBackup(ix *index, found *findings) {
	b := &ix.Backup
	if b.To == "" && isEmpty(b.Schedule) && len(b.SecretsTo) == 0 && !b.Layers {
		return
	}
	switch cure := "a directory of the host, such as \"/srv/backups/" + ix.Name + "\""; {
	case b.To == "":
		found.report(at("backup"), "add to = \"/srv/backups/"+ix.Name+"\"", "[backup] does not say where backups go")
	case !path.IsAbs(b.To) || path.Clean(b.To) == "/" || slices.Contains(strings.Split(b.To, "/"), ".."):
		found.report(at("backup", "to"), cure, "to = %q is not an absolute path of a directory", b.To)
	}
	for k, key := range b.SecretsTo {
		if !ageKey().MatchString(key) {
			found.report(at("backup", "secrets_to", k), "age-keygen makes one: age1…", "%q is not a public key of age", key)
		}
	}
	checkSchedule(found, "backup", b.Schedule)
}

func checkSnapshot(ix *index, found *findings) {
	s := ix.Snapshot
	if isEmpty(s) {
		return
	}
	checkSchedule(found, "snapshot", s)
	if s.Keep == 0 {
		found.report(at("snapshot"), "such as keep = 24", "[snapshot] does not say how many snapshots to keep")
	}
}

func isEmpty(s site.Schedule) bool {
	return s.Every == 0 && s.At == "" && s.Before == nil && s.Keep == 0
}

func checkSchedule(found *findings, table string, s site.Schedule) {
	if s.Every == 0 && len(s.Before) == 0 {
		found.report(at(table), `such as every = "1d"`, "[%s] does not say when", table)
	}
	checkInterval(found, table, s.Every)
	_, err := time.Parse(site.TimeOfDay, s.At)
	switch {
	case s.At == "":
	case err != nil || len(s.At) != len(site.TimeOfDay):
		found.report(at(table, "at"), `such as "03:00"`, "at = %q is not a time of day", s.At)
	case !s.WholeDays():
		found.report(at(table, "at"), `write every = "1d", or leave at out`,
			"at has no effect unless every is a number of days")
	}
	for k, occasion := range s.Before {
		if !slices.Contains(site.Occasions, occasion) {
			found.report(at(table, "before", k),
				problem.SuggestOr(occasion, site.Occasions, strings.Join(site.Occasions, ", ")),
				"before %q is not possible", occasion)
		}
	}
	if s.Keep < 0 || s.Keep > maxKeep {
		found.report(at(table, "keep"), fmt.Sprintf("1 to %d", maxKeep), "keep = %d is out of range", s.Keep)
	}
}

func checkInterval(found *findings, table string, every time.Duration) {
	if every != 0 && every < minEvery {
		found.report(at(table, "every"), `at least "1m"`, "every = %s is too often", every)
	}
}

// checkWatch checks that what the hosts look at is reported, and that what is reported is looked at.
func checkWatch(ix *index, found *findings) {
	checkInterval(found, "watch", ix.Watch.Every)
	reported := false
	for h := range each(ix.Hooks) {
		for k, name := range h.On {
			watched := slices.Contains(event.Watched, name)
			reported = reported || watched || !slices.Contains(event.All, name)
			if watched && !h.Alert && ix.Watch.Every == 0 {
				found.report(at("hook", h.Name, "on", k), `add watch.every = "1m"`, "event %q is not noticed without [watch]",
					name)
			}
		}
		if h.Alert && ix.Watch.Every == 0 && isEmpty(ix.Backup.Schedule) && isEmpty(ix.Snapshot) {
			found.report(at("alert"), `add watch.every = "1m"`, "[alert] has no effect without [watch]")
		}
	}
	if ix.Watch.Every > 0 && !reported {
		found.report(at("watch"), `add alert.command = ["/path/of/a/program"]`,
			"[watch] has no effect, because nobody is notified of %s", strings.Join(event.Watched, ", "))
	}
}
