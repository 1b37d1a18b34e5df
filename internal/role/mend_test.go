package role

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"orrery/internal/host"
	"orrery/internal/observe"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// A diary is a node that records what is done to it.
type diary struct {
	host.Runner
	done   []string
	answer func(args []string) (string, error)
}

func (d *diary) Run(_ context.Context, c host.Command) error {
	args := c.Args
	if len(args) > 3 && args[0] == "/bin/sh" && args[3] == "services" {
		args = append([]string{"restart"}, args[4:]...)
	}
	d.done = append(d.done, strings.Join(args, " "))
	if d.answer == nil {
		return nil
	}
	text, err := d.answer(args)
	if c.Stdout != nil {
		io.WriteString(c.Stdout, text) //nolint:errcheck // it is held in memory
	}
	return err
}

func (d *diary) Put(_ context.Context, files ...host.File) error {
	for _, f := range files {
		if !strings.HasPrefix(f.Path, "/run/orrery-role/") {
			d.done = append(d.done, "put "+f.Path)
		}
	}
	return nil
}

// twoRoles returns a site whose node has a web server and a database.
func twoRoles() *site.Site {
	return &site.Site{
		Name: "karoo",
		Roles: []site.Role{
			{Name: "db", Dir: "roles/db", Services: []string{"db.service"}},
			{
				Name: "web", Dir: "roles/web", Services: []string{"web.service", "mail.service"}, Active: []string{"dish.service"},
				Files: []site.File{
					{Path: "/etc/web", Template: "web.tmpl", Content: []byte("x\n")},
					{Path: "/etc/state", Template: "state.tmpl", Content: []byte("x\n")},
				},
				Steps: []site.Step{{Name: "seed", When: site.Boot, Script: []byte("true\n"), Interpreter: []string{"/bin/sh"},
					User: "root", Timeout: time.Minute}},
				Health: []site.HealthCheck{{Command: []string{"ask"}, Timeout: time.Second, Interval: 10 * time.Millisecond,
					Within: time.Minute}},
			},
		},
		Nodes: []site.Node{{Name: "one", ID: 1, Roles: []string{"db", "web"}}},
	}
}

func dutiesOf(t *testing.T, s *site.Site) *spec.RoleActions {
	t.Helper()
	d, err := spec.NewBuilder(s).RoleActions(&s.Nodes[0])
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestMend: each kind of drift causes exactly the necessary repair.
func TestMend(t *testing.T) {
	drift := func(kind observe.DriftKind, how observe.DriftState, subject, role string) observe.Drift {
		return observe.Drift{Kind: kind, How: how, Subject: subject, Role: role}
	}
	up := func(units string) []string {
		return []string{"systemctl unmask --quiet " + units, "systemctl enable --quiet " + units}
	}
	again := func(units string) []string {
		return append(up(units), "systemctl reset-failed --quiet "+units, "restart "+units)
	}
	reapplied := []string{"/bin/sh /run/orrery-role/web/.step-0", "restart web.service mail.service",
		"restart dish.service"}
	for name, c := range map[string]struct {
		drift []observe.Drift
		want  []string
	}{
		"a stopped service": {[]observe.Drift{drift(observe.DriftService, observe.NotRunning, "web.service", "web")},
			again("web.service")},
		"a live one": {[]observe.Drift{drift(observe.DriftService, observe.NotRunning, "dish.service", "web")},
			again("dish.service")},
		"a disabled service": {[]observe.Drift{drift(observe.DriftService, observe.NotEnabled, "web.service", "web")},
			up("web.service")},
		"an edited file": {[]observe.Drift{drift(observe.DriftFile, observe.Altered, "/etc/web", "web")},
			append([]string{"put /etc/web"}, reapplied...)},
		"a file of the layer": {[]observe.Drift{drift(observe.DriftFile, observe.Gone, "/srv/web.py", "web")},
			reapplied},
		"a program that was gone": {[]observe.Drift{drift(observe.DriftProgram, observe.Gone, "/usr/bin/tar", "")}, nil},
		"a program that was other": {[]observe.Drift{drift(observe.DriftProgram, observe.Altered, "/usr/bin/tar", "")},
			append(again("db.service"), again("web.service mail.service dish.service")...)},
		"health alone": {[]observe.Drift{drift(observe.DriftHealth, observe.Failing, "ask", "web")},
			again("web.service mail.service dish.service")},
		"health, and why": {[]observe.Drift{
			drift(observe.DriftService, observe.NotRunning, "db.service", "db"),
			drift(observe.DriftHealth, observe.Failing, "ask", "web"),
		}, again("db.service")},
		"nothing is known": {[]observe.Drift{drift(observe.DriftNode, observe.Unresponsive, "one", "")},
			[]string{"systemctl start db.service", "systemctl start web.service mail.service dish.service"}},
	} {
		s, in := twoRoles(), &diary{}
		j := &Job{Duties: dutiesOf(t, s), In: in, Is: spec.Config{}, Log: io.Discard, Say: func(string) {}, Live: true}
		if err := j.Repair(t.Context(), c.drift); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		changes := slices.DeleteFunc(in.done, func(one string) bool { return strings.HasPrefix(one, "systemctl show ") })
		if !slices.Equal(changes, c.want) {
			t.Errorf("%s: done was\n  %s\nnot\n  %s", name, strings.Join(changes, "\n  "), strings.Join(c.want, "\n  "))
		}
	}
}

// TestMendWatches: the repair fails if a stopped service exits again as soon as it is started.
func TestMendWatches(t *testing.T) {
	s := twoRoles()
	in := &diary{answer: func(args []string) (string, error) {
		if args[1] == "show" {
			return "LoadState=loaded\nActiveState=activating\nSubState=auto-restart\nResult=exit-code\nType=simple\n", nil
		}
		return "", nil
	}}
	j := &Job{Duties: dutiesOf(t, s), In: in, Log: io.Discard, Say: func(string) {}, Live: true}
	stopped := []observe.Drift{{Kind: observe.DriftService, How: observe.NotRunning, Subject: "db.service", Role: "db"}}
	if err := j.Repair(t.Context(), stopped); err == nil ||
		!strings.Contains(err.Error(), "service db.service exits immediately after its start") {
		t.Errorf("error %v", err)
	}
}

// TestMendBehind: if the only drift is a failing check of a role without services, the services of
// the roles that it needs restart.
func TestMendBehind(t *testing.T) {
	s, in := twoRoles(), &diary{}
	s.Roles = append(s.Roles, site.Role{Name: "probe", NeedsRoles: []string{"db"}, Health: s.Roles[1].Health})
	s.Nodes[0].Roles = []string{"web", "probe"}
	j := &Job{Duties: dutiesOf(t, s), In: in, Log: io.Discard, Say: func(string) {}, Live: true}
	if err := j.Repair(t.Context(),
		[]observe.Drift{{Kind: observe.DriftHealth, How: observe.Failing, Subject: "ask", Role: "probe"}}); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(in.done, "restart db.service") ||
		slices.ContainsFunc(in.done, func(one string) bool { return strings.Contains(one, "web.service") }) {
		t.Errorf("done was\n  %s", strings.Join(in.done, "\n  "))
	}
}

// TestGivenUp: a check is not repeated after systemd has given up its service. The error has the
// service's last output, sanitized and truncated.
func TestGivenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := twoRoles()
		state := "active\nactive\nactive\n"
		in := &diary{answer: func(args []string) (string, error) {
			switch args[0] + args[min(1, len(args)-1)] {
			case "askask":
				return "", &host.RunError{Place: "one", Command: args, Status: 1}
			case "systemctlis-failed":
				return state, errors.New("exit status 1")
			}
			return strings.Repeat("an old line\n", 100) + "these settings \x1b[2J say no port\n" + strings.Repeat("x", 1<<16) +
				"\n", nil
		}}
		began := time.Now()
		check := func() error { return Check(t.Context(), in, dutiesOf(t, s), func(string) {}) }
		state = "active\nfailed\nactive\n"
		err := check()
		if took := time.Since(began); took > 20*time.Second || err == nil {
			t.Fatalf("it took %s: %v", took, err)
		}
		text := fmt.Sprint(err)
		for _, want := range []string{"node one is not healthy: role web: command ask and mail.service has failed",
			`mail.service: these settings \x1b[2J say no port`, "exit status 1"} {
			if !strings.Contains(text, want) {
				t.Errorf("%q is not in\n%s", want, text)
			}
		}
		if len(text) > 4096 || strings.Count(text, "\n") > 12 || strings.Contains(text, "\x1b") {
			t.Errorf("%d bytes are told:\n%s", len(text), text)
		}

		// A service that is being restarted, or whose state is unknown, has not been given up.
		for _, state = range []string{"active\nactivating\nactive\n", "failed\n", ""} {
			s.Roles[1].Health[0].Within = 1500 * time.Millisecond
			if err := check(); err == nil || !strings.Contains(fmt.Sprint(err), "within 1.5s") {
				t.Errorf("%q: %v", state, err)
			}
		}
	})
}

// TestBehind: a check depends on the services of its role or, if there are none, on those of the
// roles that it needs.
func TestBehind(t *testing.T) {
	s := twoRoles()
	s.Roles = append(s.Roles, site.Role{Name: "probe", NeedsRoles: []string{"db"}})
	s.Nodes[0].Roles = []string{"web", "probe"}
	for i, want := range [][]string{{"db.service"}, {"web.service", "mail.service", "dish.service"}, {"db.service"}} {
		d := dutiesOf(t, s)
		if got := servicesChecked(d, &d.Roles[slices.IndexFunc(d.Roles,
			func(r spec.RoleAction) bool { return r.Name == s.Roles[i].Name })]); !slices.Equal(got, want) {
			t.Errorf("%s: %v", s.Roles[i].Name, got)
		}
	}
}
