package test

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"orrery/test/need"
)

// TestMisuse: for any wrong input, the program explains in its own words what is wrong and what to
// do, with the right exit status.
func TestMisuse(t *testing.T) {
	need.Integration(t)
	t.Parallel()
	s := newSite(t, "it-misuse", `
[network.lan]
subnet = "10.99.20.0/24"
[image.debian]
suite = "bookworm"
[node.one]
id = 10
[node.two]
id = 11
`, nil)
	at := func(name, siteFile string) string {
		s.write(name+"/site.toml", siteFile)
		return filepath.Join(s.dir, name)
	}
	broken := at("broken", "site.name = \"x\"\n[node.a\nid = 1\n")
	wrong := at("wrong", "site.name = \"Up!\"\n[network.lan]\nsubnet = \"10.0.0.0/33\"\n[node.a]\nid = 1\nroles = [\"nope\"]\nmemroy = \"1GiB\"\n[node.b]\nid = 1\n")
	remote := at("remote", "site.name = \"far\"\nimage.debian.suite = \"bookworm\"\nhost.sv1.address = \"root@127.0.0.1:1\"\nnode.a.id = 1\n")
	empty := filepath.Join(s.dir, "empty")
	if err := os.MkdirAll(empty, 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		args   []string
		status int
		texts  []string
	}{
		{[]string{"fly"}, 2, []string{`unknown verb "fly"`}},
		{[]string{"plann"}, 2, []string{"plan"}},
		{[]string{"up", "--wings"}, 2, []string{"unknown flag: --wings", "orrery up --help"}},
		{[]string{"up", "three"}, 2, []string{`no node is called "three"`}},
		{[]string{"up", "role=x"}, 2, []string{`role`}},
		{[]string{"up", "(one"}, 2, nil},
		{[]string{"query", "one and"}, 2, nil},
		{[]string{"query", "size=3"}, 2, []string{"size"}},
		{[]string{"up", "--parallel", "many"}, 2, []string{"many"}},
		{[]string{"check", "now"}, 2, nil},
		{[]string{"exec", "one"}, 2, []string{"orrery exec SELECTOR -- COMMAND"}},
		{[]string{"exec", "--", "true"}, 2, nil},
		{[]string{"exec", "one", "--", "true"}, 101, []string{"node one does not run"}},
		{[]string{"shell"}, 2, nil},
		{[]string{"shell", "on"}, 2, []string{"did you mean one"}},
		{[]string{"shell", "one"}, 1, []string{"node one does not run", "orrery up one"}},
		{[]string{"cp", "one:/x"}, 2, nil},
		{[]string{"cp", "/etc/passwd", "one:/x"}, 1, []string{"node one does not run"}},
		{[]string{"logs"}, 2, []string{"orrery logs NODE"}},
		{[]string{"inventory", "--host", "tow"}, 2, []string{`"tow"`}},
		{[]string{"import", "/no/such.ini"}, 2, []string{"cannot be read", "no such file"}},
		{[]string{"init", s.dir}, 2, []string{"a site already exists"}},
		{[]string{"-C", empty, "up"}, 3, []string{"site.toml"}},
		{[]string{"-C", "/no/such/dir", "up"}, 3, []string{"/no/such/dir"}},
		{[]string{"-C", broken, "up"}, 3, []string{`site.toml:2`}},
		{[]string{"-C", wrong, "check"}, 3, []string{`site.toml:1`, `10.0.0.0/33`, `nope`, `memroy.*memory`, `id 1`}},
		{[]string{"-C", remote, "up"}, 1, []string{"host sv1: no SSH server answers", "--without sv1"}},
		{[]string{"-C", remote, "journal"}, 1, []string{"host sv1: no SSH server answers", "--without sv1"}},
		{[]string{"-C", remote, "backup", "x.orrery"}, 1, []string{"host sv1: no SSH server answers", "--without sv1"}},
		{[]string{"start"}, 0, nil},
		{[]string{"stop"}, 0, nil},
		{[]string{"version"}, 0, []string{"orrery .* linux"}},
		{[]string{"help"}, 0, []string{"Bringing the site up and down"}},
		{[]string{"status"}, 11, []string{"one .*absent"}},
		{[]string{"logs", "one"}, 0, []string{"does not run"}},
		{[]string{"journal"}, 0, nil},
		{[]string{"image", "ls"}, 0, []string{"DIGEST"}},
		{[]string{"image", "burn"}, 2, nil},
	} {
		t.Run(strings.Join(c.args, " "), func(t *testing.T) {
			r := s.of(t).run(c.args...).want(c.status, c.texts...)
			if raw.MatchString(r.errs) {
				t.Errorf("that is no word to a user:\n%s", r.errs)
			}
			for _, line := range strings.Split(strings.TrimSpace(r.errs), "\n") {
				if c.status != 0 && c.status < 100 && c.status != 11 && !strings.HasPrefix(line, "orrery: ") &&
					!strings.HasPrefix(line, "  ") {
					t.Errorf("a line without a name: %q", line)
				}
			}
		})
	}
}

// raw are messages of libraries and runtimes.
var raw = regexp.MustCompile(`panic|goroutine|runtime error|0x[0-9a-f]{6}|%!|<nil>|(^|\s)toml: |strconv\.|errors\.|netlink receive|open /|\.go:\d`)

// TestNobody: an ordinary user is told what needs root, and can read the site directory.
func TestNobody(t *testing.T) {
	need.Integration(t)
	t.Parallel()
	// Not every user may read the program, the example and Go's directories for tests.
	dir, err := os.MkdirTemp("/tmp", "orrery-nobody-")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if out, err := sh("install -m 755 " + program + " " + dir +
		"/orrery && install -m 644 ../examples/minimal/site.toml " + dir + " && chmod 755 " + dir); err != nil {
		t.Fatal(err, out)
	}
	for verb, status := range map[string]int{
		"check": 0, "query": 0, "inventory": 0, "version": 0,
		"up": 4, "down": 4, "plan": 4, "status": 4, "start": 4, "stop": 4, "exec one -- true": 4, "shell one": 4,
		"image gc": 4,
	} {
		cmd := exec.Command(dir+"/orrery", append([]string{"-C", dir}, strings.Fields(verb)...)...)
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
		cmd.Env = append(environment(dirs), "HOME=/")
		out, _ := cmd.CombinedOutput()
		if got := cmd.ProcessState.ExitCode(); got != status {
			t.Errorf("%s as nobody: exit status %d, want %d\n%s", verb, got, status, out)
		}
		if status == 4 && !strings.Contains(string(out), "needs root") {
			t.Errorf("%s as nobody: %s", verb, out)
		}
	}
}

// TestQuick: the program starts fast.
func TestQuick(t *testing.T) {
	need.Integration(t)
	quickest := time.Hour
	for n := 0; n < 20 || n < 500 && quickest > 20*time.Millisecond; n++ { // even a busy machine is idle at some time
		began := time.Now()
		if err := exec.Command(program, "version").Run(); err != nil {
			t.Fatal(err)
		}
		quickest = min(quickest, time.Since(began))
	}
	t.Logf("orrery version takes %s", quickest.Round(time.Millisecond/10))
	if quickest > 20*time.Millisecond {
		t.Errorf("orrery version takes %s", quickest)
	}
}
