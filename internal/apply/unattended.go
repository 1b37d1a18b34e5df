package apply

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"orrery/internal/host"
	"orrery/internal/host/schedule"
	"orrery/internal/observe"
	"orrery/internal/plan"
	"orrery/internal/plan/pack"
	"orrery/internal/site"
	"orrery/internal/site/check"
	"orrery/internal/site/spec"
)

// Triggers that packages below control/unattended use. That package lists all of them.
const (
	TriggerBoot   = "boot"
	TriggerTrial  = "trial"
	TriggerMirror = "mirror"
	TriggerExpiry = "expiry"
	// TriggerRoutine is for what is done for the whole site at intervals.
	TriggerRoutine = "routine"
)

// An UnattendedPlan is what a host does for a site without the control host and without the site
// directory. The control host made it with all hosts in view. A host has at most one for each
// trigger.
type UnattendedPlan struct {
	Trigger string `json:"trigger"` // see package control/unattended
	Host    string `json:"host"`    // the name of the host in the site

	// When the host carries it out. A plan without any of these waits for a reboot.
	At    time.Time                `json:"at,omitzero"`     // once
	Every map[string]time.Duration `json:"every,omitempty"` // repeatedly, for each part of the plan by its name
	Watch bool                     `json:"watch,omitempty"` // a process that starts now decides when

	// What the host does. Each trigger uses some of these fields.
	Steps  []json.RawMessage `json:"steps,omitempty"`  // each with everything needed to do it
	Intent *observe.Switch   `json:"intent,omitempty"` // on record until the steps are done
	// directories of volumes on any host; each host handles those of its own nodes
	Of     []Directory   `json:"of,omitempty"`
	Checks []DesiredNode `json:"checks,omitempty"` // conditions that this host checks
	Hooks  []site.Hook   `json:"hooks,omitempty"`  // notified by this host
	// when something is due, by part; the host looks more often (Every)
	When map[string]site.Schedule `json:"when,omitempty"`
	// the site directory if this is the only host of the site, which then decides alone and has all
	// secrets
	Dir string `json:"dir,omitempty"`
}

// Empty reports whether there is nothing to do.
func (p *UnattendedPlan) Empty() bool {
	return p.At.IsZero() && len(p.Every) == 0 && !p.Watch && len(p.Steps) == 0
}

// Digest returns a digest of the plan, or "" if it is empty.
func (p *UnattendedPlan) Digest() string {
	if p.Empty() {
		return ""
	}
	return spec.Digest(p)
}

// Job returns the job that carries out the plan once, at a given time or when the watching process
// decides. It returns false if there is none.
func (p *UnattendedPlan) Job(key string) (job schedule.Job, ok bool) {
	job = schedule.Job{Name: JobName(key, p.Trigger), Args: []string{"host-run", key, p.Trigger}}
	if !p.At.IsZero() {
		job.After = max(0, time.Until(p.At))
	}
	return job, p.Watch || !p.At.IsZero()
}

// JobName returns the name of a plan's job.
func JobName(key, trigger string) string { return trigger + "-" + key }

// Timers returns the timers that carry out the plan repeatedly, sorted by part.
func (p *UnattendedPlan) Timers(key string) (all []schedule.Timer) {
	for part, every := range p.Every {
		all = append(all, schedule.Timer{For: p.Trigger, Part: part, Every: every,
			Args: []string{"host-run", key, p.Trigger, part}})
	}
	slices.SortFunc(all, func(a, b schedule.Timer) int { return cmp.Compare(a.Part, b.Part) })
	return all
}

// UnattendedPath returns the path of the host's plan for a trigger.
func UnattendedPath(dirs host.Dirs, key, trigger string) string {
	return filepath.Join(dirs.Site(key), "unattended", trigger+".json")
}

// WatchLock returns the path of the lock that is held by the process that watches for a trigger.
func WatchLock(dirs host.Dirs, key, trigger string) string {
	return filepath.Join(dirs.Site(key), trigger+".lock")
}

// AlertsPath returns the path of the record of what the host's watch of a site has found wrong.
func AlertsPath(dirs host.Dirs, key string) string {
	return filepath.Join(dirs.Site(key), "alerts.json")
}

// ReadUnattended returns the plan of a host for a trigger, or fs.ErrNotExist if it has none.
func ReadUnattended(dirs host.Dirs, key, trigger string) (UnattendedPlan, error) {
	p, err := host.ReadJSON[UnattendedPlan](UnattendedPath(dirs, key, trigger))
	if errors.Is(err, fs.ErrNotExist) {
		return readLegacyPlan(dirs, key, trigger)
	}
	return p, err
}

// Write stores a plan, or removes the former one if this one is empty.
func (p *UnattendedPlan) Write(dirs host.Dirs, key string) error {
	if !check.ValidLabel(p.Trigger) {
		return fmt.Errorf("%q is not the name of a trigger", p.Trigger)
	}
	path := UnattendedPath(dirs, key, p.Trigger)
	if p.Empty() {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	} else if err := host.WriteJSON(path, 0o600, p); err != nil {
		return err
	}
	return removeLegacyPlan(dirs, key, p.Trigger)
}

// A PlanID identifies a plan of a host by site key and trigger.
type PlanID struct{ Key, Trigger string }

// ListUnattended returns which plans this host has for a site, or for all sites if the key is "*".
func ListUnattended(dirs host.Dirs, key string) (all []PlanID) {
	paths, _ := filepath.Glob(UnattendedPath(dirs, key, "*"))
	for _, path := range paths {
		dir, name := filepath.Split(path)
		all = append(all, PlanID{filepath.Base(filepath.Dir(filepath.Clean(dir))), strings.TrimSuffix(name, ".json")})
	}
	all = append(all, findLegacyPlans(dirs, key)...)
	slices.SortFunc(all, func(a, b PlanID) int {
		return cmp.Or(cmp.Compare(a.Key, b.Key), cmp.Compare(a.Trigger, b.Trigger))
	})
	return slices.Compact(all)
}

// StepsOn returns the steps of a plan that are on one host.
func StepsOn(p *plan.Plan, name string) []*plan.Step {
	return pack.Subplan(slices.DeleteFunc(slices.Clone(p.Steps), func(s *plan.Step) bool { return s.Host != name }))
}

// DecodeSteps decodes steps that plan.Encode has encoded.
func DecodeSteps(steps []json.RawMessage) (all []*plan.Step, err error) {
	for _, text := range steps {
		s, err := plan.Decode(text)
		if err != nil {
			return nil, err
		}
		all = append(all, s)
	}
	return all, nil
}
