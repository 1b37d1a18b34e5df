package apply

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"orrery/internal/host"
	"orrery/internal/host/schedule"
	"orrery/internal/observe"
	"orrery/internal/site/spec"
)

// TestPlanDigest: an empty plan has no digest, and different plans have different digests.
func TestPlanDigest(t *testing.T) {
	one := UnattendedPlan{Trigger: TriggerBoot, Steps: []json.RawMessage{[]byte(`{}`)}}
	two := UnattendedPlan{Trigger: TriggerBoot, Steps: []json.RawMessage{[]byte(`{}`), []byte(`{}`)}}
	if none := (&UnattendedPlan{Trigger: TriggerBoot, Host: "sv1"}).Digest(); none != "" || one.Digest() == "" ||
		one.Digest() == two.Digest() {
		t.Errorf("%q, %q, %q", none, one.Digest(), two.Digest())
	}
}

// TestPlanRuns: a plan is carried out by nothing before a reboot, by a process now or at a time, or
// by timers.
func TestPlanRuns(t *testing.T) {
	args := []string{"host-run", "karoo", "x"}
	for what, c := range map[string]struct {
		plan   UnattendedPlan
		once   bool
		after  time.Duration
		timers []schedule.Timer
	}{
		"boot":  {plan: UnattendedPlan{}},
		"watch": {plan: UnattendedPlan{Watch: true}, once: true},
		"time":  {plan: UnattendedPlan{At: time.Now().Add(time.Hour)}, once: true, after: time.Hour},
		"over":  {plan: UnattendedPlan{At: time.Now().Add(-time.Hour)}, once: true},
		"interval": {plan: UnattendedPlan{Every: map[string]time.Duration{"b": 2, "a": 1}},
			timers: []schedule.Timer{{For: "x", Part: "a", Every: 1, Args: append(args[:3:3], "a")},
				{For: "x", Part: "b", Every: 2, Args: append(args[:3:3], "b")}}},
	} {
		c.plan.Trigger = "x"
		job, once := c.plan.Job("karoo")
		if once != c.once || job.Name != "x-karoo" || !slices.Equal(job.Args, args) || job.After > c.after ||
			job.After < c.after-time.Minute {
			t.Errorf("%s: %+v, %v", what, job, once)
		}
		same := func(a, b schedule.Timer) bool {
			return a.For == b.For && a.Part == b.Part && a.Every == b.Every && slices.Equal(a.Args, b.Args)
		}
		if all := c.plan.Timers("karoo"); !slices.EqualFunc(all, c.timers, same) {
			t.Errorf("%s: timers are %+v", what, all)
		}
	}
}

// TestPlansKept: a host has one plan for a trigger of a site, until an empty plan is written.
func TestPlansKept(t *testing.T) {
	dirs := host.Dirs{State: t.TempDir()}
	write := func(key string, p UnattendedPlan) {
		t.Helper()
		if err := p.Write(dirs, key); err != nil {
			t.Fatal(err)
		}
	}
	write("toykat", UnattendedPlan{Trigger: TriggerTrial, Watch: true})
	write("karoo", UnattendedPlan{Trigger: TriggerTrial, Watch: true})
	write("karoo", UnattendedPlan{Trigger: TriggerBoot, Host: "sv1", Steps: []json.RawMessage{[]byte("{}")}})
	write("karoo", UnattendedPlan{Trigger: TriggerMirror})
	if all := ListUnattended(dirs, "*"); !slices.Equal(all,
		[]PlanID{{"karoo", TriggerBoot}, {"karoo", TriggerTrial}, {"toykat", TriggerTrial}}) {
		t.Errorf("plans are %v", all)
	}
	if p, err := ReadUnattended(dirs, "karoo", TriggerBoot); err != nil || p.Host != "sv1" || len(p.Steps) != 1 {
		t.Errorf("%+v, %v", p, err)
	}
	write("karoo", UnattendedPlan{Trigger: TriggerBoot})
	if _, err := ReadUnattended(dirs, "karoo", TriggerBoot); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("ended: %v", err)
	}
	if all := ListUnattended(dirs, "karoo"); !slices.Equal(all, []PlanID{{"karoo", TriggerTrial}}) {
		t.Errorf("plans of one site are %v", all)
	}
	if err := (&UnattendedPlan{Trigger: "../boot", Watch: true}).Write(dirs, "karoo"); err == nil {
		t.Error("a plan lies elsewhere")
	}
}

// TestFormerPlans: the files of a former version are used until they are replaced, and then
// removed.
func TestFormerPlans(t *testing.T) {
	dirs := host.Dirs{State: t.TempDir()}
	for trigger, c := range map[string]struct {
		file, text string
		ok         func(p *UnattendedPlan) bool
	}{
		TriggerBoot: {"boot.json", `{"host": "sv1", "steps": [{}, {}]}`,
			func(p *UnattendedPlan) bool { return len(p.Steps) == 2 && !p.Watch }},
		TriggerTrial: {
			"wayback.json", `{"host": "sv1", "intent": {"to": {"web": 700}, "alone": true}, "steps": [{}], "checks": [{"Node": {"name": "web"}}], "hooks": [{"name": "page"}]}`,
			func(p *UnattendedPlan) bool {
				return p.Watch && p.Intent.To["web"] == 700 && p.Intent.Alone && len(p.Steps) == 1 &&
					p.Checks[0].Node.Name == "web" && len(p.Hooks) == 1
			},
		},
		TriggerMirror: {"mirroring.json",
			`{"host": "sv1", "of": [{"node": "web", "mount": {"volume": "data"}, "mirror": "/m/web", "every": 3600000000000}]}`,
			func(p *UnattendedPlan) bool {
				return p.Every["data"] == time.Hour && p.Of[0].Mirror == "/m/web"
			}},
	} {
		path := filepath.Join(dirs.Site("karoo"), c.file)
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(c.text), 0o600); err != nil {
			t.Fatal(err)
		}
		p, err := ReadUnattended(dirs, "karoo", trigger)
		if err != nil || p.Trigger != trigger || p.Host != "sv1" || !c.ok(&p) {
			t.Errorf("%s: %+v, %v", c.file, p, err)
		}
		if all := ListUnattended(dirs, "*"); !slices.Equal(all, []PlanID{{"karoo", trigger}}) {
			t.Errorf("%s: plans are %v", c.file, all)
		}
		if err := p.Write(dirs, "karoo"); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(path); err == nil {
			t.Errorf("%s is kept", c.file)
		}
		if again, err := ReadUnattended(dirs, "karoo", trigger); err != nil || again.Digest() != p.Digest() {
			t.Errorf("%s: written anew, it is %+v, %v", c.file, again, err)
		}
		if err := (&UnattendedPlan{Trigger: trigger}).Write(dirs, "karoo"); err != nil || len(ListUnattended(dirs, "*")) > 0 {
			t.Errorf("%s: %v", c.file, err)
		}
	}
}

// TestPlanWhole: a plan that is read from the disk of a host is the one that was written, including
// its nodes.
func TestPlanWhole(t *testing.T) {
	dirs := host.Dirs{State: t.TempDir()}
	p := UnattendedPlan{Trigger: TriggerTrial, Watch: true, Intent: &observe.Switch{Alone: true},
		Checks: []DesiredNode{{Node: &spec.Node{Name: "web"}, Duties: &spec.RoleActions{}}}}
	if err := p.Write(dirs, "karoo"); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadUnattended(dirs, "karoo", TriggerTrial); err != nil || got.Digest() != p.Digest() {
		t.Errorf("%+v, %v", got, err)
	}
	if text, _ := os.ReadFile(UnattendedPath(dirs, "karoo", TriggerTrial)); !strings.Contains(string(text),
		`"trigger": "trial"`) {
		t.Errorf("%s", text)
	}
}
