package apply

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"orrery/internal/host"
	"orrery/internal/host/twins"
)

// This file can be deleted when no host has plans of a former version any more. A host may reboot
// after an update before the control host has written its plans again.

// legacyPlans lists the files in which a former version stored plans, and how to set the fields that
// they lack.
var legacyPlans = map[string]struct {
	file  string
	adapt func(*UnattendedPlan)
}{
	TriggerBoot:  {"boot.json", func(*UnattendedPlan) {}},
	TriggerTrial: {"wayback.json", func(p *UnattendedPlan) { p.Watch = true }},
	TriggerMirror: {"mirroring.json", func(p *UnattendedPlan) {
		p.Every = map[string]time.Duration{}
		for _, d := range p.Of {
			p.Every[d.Mount.Volume] = d.Every
		}
	}},
}

func readLegacyPlan(dirs host.Dirs, key, trigger string) (p UnattendedPlan, err error) {
	if trigger == TriggerExpiry { // a former version took the time from the record of the twin
		r, err := twins.Read(dirs, key)
		if err == nil && r.Expires.IsZero() {
			err = fs.ErrNotExist
		}
		return UnattendedPlan{Trigger: trigger, Host: "local", At: r.Expires}, err
	}
	f, ok := legacyPlans[trigger]
	if !ok {
		return p, fs.ErrNotExist
	}
	if p, err = host.ReadJSON[UnattendedPlan](filepath.Join(dirs.Site(key), f.file)); err == nil {
		p.Trigger = trigger
		f.adapt(&p)
	}
	return p, err
}

func removeLegacyPlan(dirs host.Dirs, key, trigger string) error {
	f, ok := legacyPlans[trigger]
	if !ok {
		return nil
	}
	if err := os.Remove(filepath.Join(dirs.Site(key), f.file)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

func findLegacyPlans(dirs host.Dirs, key string) (all []PlanID) {
	for trigger, f := range legacyPlans {
		paths, _ := filepath.Glob(filepath.Join(dirs.Site(key), f.file))
		for _, path := range paths {
			all = append(all, PlanID{filepath.Base(filepath.Dir(path)), trigger})
		}
	}
	for _, r := range twins.List(dirs) {
		if !r.Expires.IsZero() && (key == "*" || key == r.Key()) {
			all = append(all, PlanID{r.Key(), TriggerExpiry})
		}
	}
	return all
}
