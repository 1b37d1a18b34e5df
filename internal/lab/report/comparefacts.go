package report

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tidwall/gjson"

	"orrery/internal/text/pattern"
)

// A FactDifference is a fact that differs between two bundles.
type FactDifference struct {
	Name   string `json:"name"`
	Before string `json:"before"` // or "" if the bundle does not have it
	After  string `json:"after"`
}

// volatileFacts lists facts that change all the time, by the last word of their names.
var volatileFacts = []string{"taken", "collected", "load", "available", "swap used", "free", "processors clock"}

// ownInterface matches facts about interfaces of Orrery's nodes and networks. Their names are digests
// (package network/ends). Those of other sites come and go, and the measurements use only those of
// the lab, which are new in each run.
var ownInterface = pattern.New(`^interfaces or[bvoxlw][0-9a-f]{6,}( |$)`)

// factDifferences lists the facts that differ, in the order of the first, then those that only the
// second has.
func factDifferences(before, after json.RawMessage) (all []FactDifference) {
	a, b := rows(before), rows(after)
	old, current := values(a), values(b)
	for _, r := range a {
		if other := current[r.Name]; other != r.Value {
			all = append(all, shortened(r.Name, r.Value, other))
		}
	}
	for _, r := range b {
		if old[r.Name] == "" {
			all = append(all, shortened(r.Name, "", r.Value))
		}
	}
	return all
}

// values returns the first value of each name.
func values(of []factRow) map[string]string {
	all := map[string]string{}
	for _, r := range of {
		if _, ok := all[r.Name]; !ok {
			all[r.Name] = r.Value
		}
	}
	return all
}

func rows(facts json.RawMessage) (kept []factRow) {
	for _, r := range flatten("", gjson.ParseBytes(facts), maxFactDepth) {
		r.Name = withSpaces(r.Name)
		if !ownInterface().MatchString(r.Name) &&
			!slices.ContainsFunc(volatileFacts, func(end string) bool {
				return r.Name == end ||
					strings.HasSuffix(r.Name, " "+end)
			}) {
			kept = append(kept, r)
		}
	}
	return kept
}

// shortened removes items that both long lists have.
func shortened(name, before, after string) FactDifference {
	const long = 80
	a, b := strings.Split(before, ", "), strings.Split(after, ", ")
	if len(before) > long && len(a) > 3 && after != "" {
		lacks := func(list []string) func(string) bool { return func(s string) bool { return slices.Contains(list, s) } }
		gone, come := slices.DeleteFunc(slices.Clone(a), lacks(b)), slices.DeleteFunc(slices.Clone(b), lacks(a))
		return FactDifference{name, "… " + strings.Join(gone, ", "), "… " + strings.Join(come, ", ")}
	}
	return FactDifference{name, before, after}
}
