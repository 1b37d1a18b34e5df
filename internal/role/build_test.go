package role

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/distro"
	"orrery/internal/site/spec"
)

// layerOf returns a layer for a role with everything that a layer can have.
func layerOf() *spec.Layer {
	return &spec.Layer{Title: "debian + web", Pins: "flask==3.0\n", Roles: []*site.Role{{
		Name: "web", Dir: "roles/web", Apt: []string{"nginx", "curl"}, Pip: []string{"flask"},
		Services: []string{"web.service"},
		Files: []site.File{
			{Path: "/etc/web", Content: []byte("x\n")}, {Path: "/srv/page", Owner: "www-data:www-data", Content: []byte("x\n")},
			{Path: "/etc/rendered", Template: "t", Content: []byte("{{ .Node.Name }}\n")},
		},
		Steps: []site.Step{
			{Name: "compile", When: site.Build, Script: []byte("make\n"), Interpreter: []string{"/bin/sh"},
				Timeout: time.Minute, Line: 7},
			{Name: "seed", When: site.Boot, Script: []byte("true\n"), Interpreter: []string{"/bin/sh"}, Timeout: time.Minute,
				Line: 9},
		},
	}}}
}

func build(t *testing.T, in *diary, l *spec.Layer) error {
	t.Helper()
	install := func(_ context.Context, _ host.Runner, _ *distro.Distribution, packages []string, _ io.Writer) error {
		in.done = append(in.done, "install "+strings.Join(packages, " "))
		return nil
	}
	return Build(t.Context(), in, l, install, io.Discard, func(string) {})
}

// at returns the index of the first action that begins with a text.
func (d *diary) at(t *testing.T, begins string) int {
	t.Helper()
	i := slices.IndexFunc(d.done, func(s string) bool { return strings.HasPrefix(s, begins) })
	if i < 0 {
		t.Errorf("%q was not done: %q", begins, d.done)
	}
	return i
}

// TestBuild: a layer gets files, packages, files owned by users of the packages, Python packages
// and the results of build steps, in this order. Boot steps do not run, and services that need them
// are not enabled.
func TestBuild(t *testing.T) {
	in := &diary{}
	if err := build(t, in, layerOf()); err != nil {
		t.Fatal(err)
	}
	order := []string{"put /etc/web", "install curl nginx python3-venv", "put /srv/page", "python3 -m venv " + Venv,
		Venv + "/bin/pip install", "/bin/sh " + Dir("web") + "/.step-7"}
	for i, begins := range order[1:] {
		if in.at(t, order[i]) >= in.at(t, begins) {
			t.Errorf("%q is not before %q: %q", order[i], begins, in.done)
		}
	}
	for _, never := range []string{"/etc/rendered", ".step-9", "systemctl enable"} {
		if slices.ContainsFunc(in.done, func(s string) bool { return strings.Contains(s, never) }) {
			t.Errorf("%s has no place in a layer: %q", never, in.done)
		}
	}
	if last := in.done[len(in.done)-1]; !strings.HasSuffix(last, " web.service") {
		t.Errorf("the last was %q", last)
	}
	if pip := in.done[in.at(t, Venv)]; !strings.Contains(pip, "--constraint") || !strings.HasSuffix(pip, " flask") {
		t.Errorf("pip was told %q", pip)
	}
	bare := layerOf()
	r := bare.Roles[0]
	r.Apt, r.Pip, r.Steps, r.Services, r.Files = nil, nil, nil, nil, nil
	in = &diary{}
	if err := build(t, in, bare); err != nil || len(in.done) > 0 {
		t.Errorf("of nothing: %q, %v", in.done, err)
	}
}

// TestBuildFails: the error has the role's file and line, or a possible mistake in the
// requirements.
func TestBuildFails(t *testing.T) {
	broken := func(word string) *diary {
		return &diary{answer: func(args []string) (string, error) {
			if strings.Contains(strings.Join(args, " "), word) {
				return "", &host.RunError{Place: "layer", Command: args, Status: 2}
			}
			return "", nil
		}}
	}
	var p *problem.Problem
	if err := build(t, broken(".step-7"), layerOf()); !errors.As(err, &p) || p.Where != "roles/web/role.toml:7" ||
		strings.Contains(err.Error(), ".step-7") {
		t.Errorf("a step: %v", err)
	}
	script := layerOf()
	script.Roles[0].Steps[0].Run = "compile.sh"
	if err := build(t, broken(".step-7"), script); !errors.As(err, &p) || p.Where != "roles/web/compile.sh" {
		t.Errorf("a script: %v", err)
	}
	if err := build(t, broken("pip install"), layerOf()); err == nil ||
		!strings.Contains(err.Error(), "pin all of them and their dependencies") {
		t.Errorf("pip: %v", err)
	}
	if err := build(t, broken("-m venv"), layerOf()); err == nil || !strings.Contains(err.Error(), "virtual environment") {
		t.Errorf("venv: %v", err)
	}
}

// TestPipArguments: requirements with hashes list everything that is installed. Without hashes they
// constrain the versions of the roles' packages.
func TestPipArguments(t *testing.T) {
	for pins, want := range map[string]string{
		" \n": "a b", "b==1\n": "--constraint F a b", "b==1 --hash=sha256:0\n": "--require-hashes --requirement F",
		"B[x,y]==1\n": "--constraint F a b[x,y]", "b[x]==1 ; sys_platform == 'win32'\n": "--constraint F a b",
		"# none\n": "a b",
	} {
		if got := strings.Join(pipArguments([]string{"b", "a", "b"}, pins, "F"), " "); got != want {
			t.Errorf("%q: %s", pins, got)
		}
	}
}

// TestPipFile: a file with constraints names no extras, and is otherwise unchanged.
func TestPipFile(t *testing.T) {
	for text, want := range map[string]string{
		"b[x, y]==1 ; python_version > '3' # why\n--only-binary :all:\na===1\n": "b==1 ; python_version > '3'\n--only-binary :all:\na===1\n",
		"b[x]==1 --hash=sha256:0\n": "b[x]==1 --hash=sha256:0\n",
	} {
		if got := pipFile(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// TestServiceFails: if a service does not start or a command on it fails, the error names the node.
func TestServiceFails(t *testing.T) {
	d := dutiesOf(t, twoRoles())
	in := &diary{answer: func(args []string) (string, error) {
		if slices.Contains(args, "web.service") || slices.Contains(args, "dish.service") {
			return "", &host.RunError{Place: "one", Command: args, Status: 1}
		}
		return "", nil
	}}
	j := &Job{Duties: d, In: in, Log: io.Discard, Say: func(string) {}, Live: true,
		Is: spec.Config{Services: []string{"db.service", "web.service", "mail.service"},
			Parts: spec.PartDigests{"web: x": "1", "db: x": "1"}}}
	err := j.Configure(t.Context())
	if err == nil || !strings.Contains(err.Error(), "role web: a service failed to start") ||
		!strings.Contains(err.Error(), "orrery logs one") {
		t.Errorf("%v", err)
	}
	if err := j.Activate(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "role web: enable of its services failed") {
		t.Errorf("%v", err)
	}
	if err := j.Retire(t.Context()); err == nil ||
		!strings.Contains(err.Error(), "role web: disable of its services failed") {
		t.Errorf("%v", err)
	}
}

// TestUnlayered: on a node without layers, the content of a role's layer is installed while the
// node runs. It is installed again when it changes, but not for roles that do not change.
func TestUnlayered(t *testing.T) {
	cam := &site.Role{Name: "cam", Apt: []string{"less", "ed"},
		Files: []site.File{{Path: "/srv/cam", Content: []byte("x"), Mode: 0o644}}}
	db := &site.Role{Name: "db", Steps: []site.Step{{Name: "make", When: site.Build, Script: []byte("true\n"),
		Timeout: time.Minute}}}
	in := &diary{}
	j := &Job{
		Duties: &spec.RoleActions{Node: "one", Unlayered: true, Roles: []spec.RoleAction{{Role: cam}, {Role: db}}}, In: in,
		Log: io.Discard, Say: func(string) {},
		Is: spec.Config{Parts: spec.PartDigests{"cam: apt": "less ed", "db: step make": "1"}},
	}
	if err := j.installUnlayered(t.Context()); err != nil {
		t.Fatal(err)
	}
	all := strings.Join(in.done, "\n")
	for _, want := range []string{"put /srv/cam", "apt-get -q -o DPkg::Lock::Timeout=300 update", "install -- ed less",
		"/run/orrery-role/db/.step-0"} {
		if !strings.Contains(all, want) {
			t.Errorf("%s is not done: %s", want, all)
		}
	}
	in.done = nil
	j.Was = spec.Config{Parts: spec.PartDigests{"cam: apt": "less ed"}}
	if err := j.installUnlayered(t.Context()); err != nil || strings.Contains(strings.Join(in.done, "\n"), "apt-get") ||
		len(in.done) == 0 {
		t.Errorf("%v, %v", in.done, err)
	}
	in.done = nil
	j.Was = j.Is
	if err := j.installUnlayered(t.Context()); err != nil || len(in.done) > 0 {
		t.Errorf("%v, %v", in.done, err)
	}
}
