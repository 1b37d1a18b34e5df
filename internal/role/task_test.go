package role

import (
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"orrery/internal/observe"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

// cluster returns a node with daemons of a scheduler above the role with their configuration, and
// with one unrelated role.
func cluster() *site.Site {
	step := func(name, when string) site.Step {
		return site.Step{Line: 1, Name: name, When: when, Script: []byte("true\n"), Interpreter: []string{name},
			User: "root", Timeout: time.Minute}
	}
	rendered := func(path string) site.File {
		return site.File{Path: path, Template: path, Content: []byte("old\n"), Owner: "root:root", Mode: 0o644}
	}
	return &site.Site{
		Name: "karoo",
		Roles: []site.Role{
			{Name: "base", Services: []string{"munge.service"},
				Files: []site.File{rendered("/etc/slurm.conf"), rendered("/etc/motd")}, Steps: []site.Step{step("key", site.Boot)}},
			{Name: "ctld", NeedsRoles: []string{"base"}, Services: []string{"slurmctld.service"},
				Active: []string{"pager.service"}, Steps: []site.Step{step("spool", site.Boot)}},
			{Name: "web", Services: []string{"web.service"}, Steps: []site.Step{step("seed", site.Boot)}},
			{Name: "login", NeedsRoles: []string{"ctld"}, Services: []string{"login.service"},
				Files: []site.File{rendered("/etc/login")}},
		},
		Nodes: []site.Node{{Name: "one", ID: 1, Roles: []string{"login", "web"}}},
	}
}

// changed returns the job that updates the first node of a site after a change.
func changed(t *testing.T, s *site.Site, change func()) (*Job, *diary) {
	t.Helper()
	config := func() spec.Config {
		n, err := spec.NewBuilder(s).Node(&s.Nodes[0])
		if err != nil {
			t.Fatal(err)
		}
		return n.Config
	}
	before := config()
	change()
	in := &diary{}
	return &Job{Duties: dutiesOf(t, s), In: in, Was: before, Is: config(), Log: io.Discard, Say: func(string) {},
		Live: true}, in
}

// done returns the actions of a diary without the queries.
func done(in *diary) (all []string) {
	for _, line := range in.done {
		line, _, _ = strings.Cut(line, " /run/orrery-role/") // a step is identified by its interpreter
		if !strings.HasPrefix(line, "systemctl is-system-running") && !strings.HasPrefix(line, "systemctl show") {
			all = append(all, line)
		}
	}
	return all
}

// TestConfigureAbove: a changed role is applied, and so are the roles that need it, because their
// daemons have read its files.
func TestConfigureAbove(t *testing.T) {
	above := []string{"key", "spool", "restart munge.service", "restart slurmctld.service", "restart login.service",
		"restart pager.service"}
	for name, c := range map[string]struct {
		change func(*site.Site)
		want   []string
	}{
		"nothing": {func(*site.Site) {}, nil},
		"a file of a base role": {func(s *site.Site) { s.Roles[0].Files[0].Content = []byte("new\n") },
			slices.Concat([]string{"put /etc/slurm.conf", "put /etc/motd", "put /etc/login"}, above)},
		"the base role's variables": {func(s *site.Site) { s.Roles[0].Env = map[string]string{"A": "b"} },
			slices.Concat([]string{"put /etc/slurm.conf", "put /etc/motd", "put /etc/login"}, above)},
		"a file of the role above": {func(s *site.Site) { s.Roles[3].Files[0].Content = []byte("new\n") },
			[]string{"put /etc/login", "restart login.service"}},
		"a step of one in between": {func(s *site.Site) { s.Roles[1].Steps[0].Script = []byte("false\n") },
			[]string{"put /etc/login", "spool", "restart slurmctld.service", "restart login.service", "restart pager.service"}},
		"a file that says it": {func(s *site.Site) {
			s.Roles[0].Files[0].Content, s.Roles[0].Files[0].Restarts = []byte("new\n"),
				[]string{"slurmctld.service", "pager.service", "slurmd.service"}
		}, []string{"put /etc/slurm.conf", "restart slurmctld.service pager.service"}},
		"a file that says none": {func(s *site.Site) {
			s.Roles[0].Files[1].Content, s.Roles[0].Files[1].Restarts = []byte("new\n"), []string{}
		}, []string{"put /etc/motd"}},
		"a file above that says a base service, and a variable": {func(s *site.Site) {
			s.Roles[3].Files[0].Content, s.Roles[3].Files[0].Restarts = []byte("new\n"), []string{"munge.service"}
			s.Roles[3].Env = map[string]string{"A": "b"}
		}, []string{"put /etc/login", "restart munge.service", "restart login.service"}},
		"a new file above that says a base service": {func(s *site.Site) {
			added := s.Roles[3].Files[0]
			added.Path, added.Template, added.Restarts = "/etc/new", "new", []string{"munge.service", "login.service"}
			s.Roles[3].Files = append(s.Roles[3].Files, added)
		}, []string{"put /etc/login", "put /etc/new", "restart munge.service", "restart login.service"}},
		"that alone is no change": {func(s *site.Site) { s.Roles[0].Files[1].Restarts = []string{} }, nil},
		"such a file and another": {func(s *site.Site) {
			s.Roles[0].Files[1].Restarts = []string{}
			s.Roles[0].Files[1].Content = []byte("new\n")
			s.Roles[0].Files[0].Content = []byte("new\n")
		}, slices.Concat([]string{"put /etc/slurm.conf", "put /etc/motd", "put /etc/login"}, above)},
		"a service of the base role": {func(s *site.Site) {
			s.Roles[0].Services = append(s.Roles[0].Services, "new.service")
		}, slices.Concat([]string{"put /etc/slurm.conf", "put /etc/motd", "put /etc/login", "key", "spool",
			"restart munge.service new.service"}, above[3:])},
	} {
		s := cluster()
		j, in := changed(t, s, func() { c.change(s) })
		if err := j.Configure(t.Context()); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := done(in); !slices.Equal(got, c.want) {
			t.Errorf("%s: done was\n  %s\nnot\n  %s", name, strings.Join(got, "\n  "), strings.Join(c.want, "\n  "))
		}
	}
}

// TestConfigureRotated: when a secret is rotated, the roles that read it are applied, and the roles that
// need them, and no others.
func TestConfigureRotated(t *testing.T) {
	s := cluster()
	s.Roles[1].Secrets = []site.SecretUse{{Name: "key", Owner: "root:root", Mode: 0o400}}
	j, in := changed(t, s, func() {})
	j.Is.Secrets = map[string]int{"key": 2, "other": 2}
	j.Was.Secrets = map[string]int{"other": 1}
	if err := j.Configure(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := []string{"put /etc/login", "spool", "restart slurmctld.service", "restart login.service",
		"restart pager.service"}
	if got := done(in); !slices.Equal(got, want) {
		t.Errorf("done was\n  %s", strings.Join(got, "\n  "))
	}
}

// TestConfigureStarted: a step that needs services runs after the services of all roles have
// started, including roles above its own.
func TestConfigureStarted(t *testing.T) {
	s := cluster()
	s.Roles[0].Steps = append(s.Roles[0].Steps,
		site.Step{Line: 1, Name: "fill", When: site.Started, Script: []byte("true\n"), Interpreter: []string{"fill"},
			User: "root", Timeout: time.Minute})
	j, in := changed(t, s, func() { s.Roles[0].Steps[1].Script = []byte("false\n") })
	if err := j.Configure(t.Context()); err != nil {
		t.Fatal(err)
	}
	got := done(in)
	if i := slices.Index(got, "fill"); i < 0 || i < slices.Index(got, "restart login.service") ||
		i > slices.Index(got, "restart pager.service") {
		t.Errorf("the step is not done between the services of all roles and those of a live node:\n  %s",
			strings.Join(got, "\n  "))
	}
}

// TestConfigureCutShort: after an interrupted run, a file that declares which services restart does
// not prevent the remaining work.
func TestConfigureCutShort(t *testing.T) {
	s := cluster()
	s.Roles[0].Files[0].Restarts, s.Roles[0].Files[1].Restarts, s.Roles[0].Steps = []string{}, []string{}, nil
	j, in := changed(t, s, func() {})
	j.Was = spec.Config{Services: j.Was.Services}
	if err := j.Configure(t.Context()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"restart munge.service", "restart slurmctld.service", "restart web.service",
		"restart login.service"} {
		if got := done(in); !slices.Contains(got, want) {
			t.Errorf("%s is not among\n  %s", want, strings.Join(got, "\n  "))
		}
	}
}

// TestMendAbove: after a drifted file is restored, the daemons of the roles above restart, as after
// a change of the file.
func TestMendAbove(t *testing.T) {
	s := cluster()
	s.Roles[0].Files[1].Restarts = []string{"web.service"}
	drift := func(path, role string) observe.Drift {
		return observe.Drift{Kind: observe.DriftFile, How: observe.Altered, Subject: path, Role: role}
	}
	for name, c := range map[string]struct {
		drift []observe.Drift
		want  []string
	}{
		"a file": {[]observe.Drift{drift("/etc/slurm.conf", "base")},
			[]string{"put /etc/slurm.conf", "key", "spool", "restart munge.service", "restart slurmctld.service",
				"restart login.service", "restart pager.service"}},
		"a file that says it": {[]observe.Drift{drift("/etc/motd", "base")},
			[]string{"put /etc/motd", "restart web.service"}},
	} {
		j, in := changed(t, s, func() {})
		if err := j.Repair(t.Context(), c.drift); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if got := done(in); !slices.Equal(got, c.want) {
			t.Errorf("%s: done was\n  %s\nnot\n  %s", name, strings.Join(got, "\n  "), strings.Join(c.want, "\n  "))
		}
	}
}
