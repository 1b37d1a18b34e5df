package outfit

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"orrery/internal/problem"
)

// A bare machine has some programs, and records what is installed.
type bare struct {
	has      []string
	knows    []string // packages in its archives
	confines bool
	fails    string // a command line that contains this text fails
	ran      []string
	says     []string
	ends     context.CancelFunc
}

func (b *bare) machine() Machine {
	return Machine{Has: func(program string) bool { return slices.Contains(b.has, program) },
		Confines: func() bool { return b.confines }, Run: b.run, Quiet: func() (func(), error) { return func() {}, nil }}
}

func (b *bare) run(_ context.Context, line func(string), args ...string) error {
	text := strings.Join(args, " ")
	b.ran = append(b.ran, text)
	if b.ends != nil {
		b.ends()
		return errors.New("signal: interrupt")
	}
	if b.fails != "" && strings.Contains(text, b.fails) {
		return errors.New("exit status 100: E: no way")
	}
	if args[0] == "apt-cache" && !slices.Contains(b.knows, args[2]) {
		return errors.New("exit status 100")
	}
	if i := slices.Index(args, "--"); i > 0 {
		for _, name := range args[i+1:] {
			line("Setting up " + name + " ...")
			line("(Reading database ...")
			for _, n := range requirements {
				if slices.Contains(n.in, name) {
					b.has = append(b.has, n.program)
				}
			}
		}
	}
	return nil
}

func (b *bare) install(t *testing.T, engines ...string) ([]string, error) {
	return b.machine().Install(t.Context(), engines, func(text string) { b.says = append(b.says, text) })
}

// TestInstall checks that missing programs are installed, and nothing on a second call.
func TestInstall(t *testing.T) {
	b := &bare{has: []string{"apt-get", "dpkg", "ip", "nft", "xz", "zstd", "update-ca-certificates", "rsync",
		"apt-ftparchive", "gpg", "gpg-agent"}, knows: []string{"lxc", "mmdebstrap", "qemu-system-x86", "qemu-utils",
		"qemu-system-common"}}
	if got := b.machine().Missing([]string{"lxc"}); !slices.Equal(got, []string{"lxc-start", "mmdebstrap"}) {
		t.Errorf("missing are %v", got)
	}
	got, err := b.install(t, "lxc")
	if err != nil || !slices.Equal(got, []string{"lxc", "mmdebstrap"}) {
		t.Fatalf("installed are %v (%v)", got, err)
	}
	if said := strings.Join(b.says, "\n"); !strings.Contains(said, "installing lxc, mmdebstrap\nSetting up lxc ...") ||
		strings.Contains(said, "Reading") {
		t.Errorf("said is %s", said)
	}
	if first := b.ran[0]; !strings.Contains(first, "dpkg --configure -a") {
		t.Errorf("the first is %s", first)
	}
	before := len(b.ran)
	if got, err := b.install(t, "lxc"); err != nil || len(got) > 0 || len(b.ran) > before {
		t.Errorf("again: %v, %v, %v", got, err, b.ran[before:])
	}
	if got, err := b.install(t, "lxc", "kvm"); err != nil ||
		!slices.Equal(got, []string{"qemu-system-x86", "qemu-utils", "qemu-system-common"}) {
		t.Errorf("for virtual machines, where there is no package virtiofsd: %v (%v)", got, err)
	}
}

// debian are some packages of Debian's archives.
var debian = []string{"lxc", "mmdebstrap", "nftables", "iproute2", "zstd", "xz-utils", "ca-certificates", "apt-utils",
	"gpg", "gpg-agent", "rsync", "apparmor"}

// TestInstallConfined checks that LXC needs apparmor_parser if the kernel has AppArmor.
func TestInstallConfined(t *testing.T) {
	for _, on := range []bool{false, true} {
		b := &bare{has: []string{"apt-get", "dpkg"}, knows: debian, confines: on}
		if got, err := b.install(t, "lxc"); err != nil || slices.Contains(got, "apparmor") != on {
			t.Errorf("AppArmor %v: installed are %v (%v)", on, got, err)
		}
	}
}

func TestInstallNot(t *testing.T) {
	for what, c := range map[string]struct {
		on   *bare
		kind problem.Kind
		says string
	}{
		"no apt": {&bare{}, problem.Unable, "no apt-get"},
		"dpkg fails": {&bare{has: []string{"apt-get", "dpkg"}, fails: "configure"}, problem.Failed,
			"dpkg --configure -a failed"},
		"apt fails": {&bare{has: []string{"apt-get", "dpkg"}, knows: debian, fails: "install"}, problem.Failed,
			"E: no way"},
		"the archives don't": {&bare{has: []string{"apt-get", "dpkg"}, knows: debian, fails: "update"}, 0, ""},
		"none was reached": {&bare{has: []string{"apt-get", "dpkg"}, fails: "update"}, problem.Unable,
			"apt knows no package lxc, "},
		"no archives": {&bare{has: []string{"apt-get", "dpkg"}, knows: debian[1:]}, problem.Unable,
			"apt knows no package lxc here (check which archives"},
	} {
		if _, err := c.on.install(t, "lxc"); problem.ExitCode(err) != int(c.kind) || err != nil &&
			!strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v", what, err)
		}
	}
	b := &bare{has: []string{"apt-get", "dpkg"}}
	ctx, end := context.WithCancel(t.Context())
	b.ends = end
	if _, err := b.machine().Install(ctx, nil, func(string) {}); problem.ExitCode(err) != int(problem.Interrupted) {
		t.Errorf("interrupted: %v", err)
	}
}

// TestRun checks that a program's output is passed on line by line, even if lines are long, with
// visible control characters. The last lines are in its error.
func TestRun(t *testing.T) {
	var lines []string
	err := run(t.Context(), func(text string) { lines = append(lines, text) }, "/bin/sh", "-c",
		`printf 'one\033[2J\n'; head -c 10000 /dev/zero | tr '\0' x; echo; echo last >&2; exit 3`)
	if err == nil || !strings.Contains(err.Error(), "exit status 3") || !strings.HasSuffix(err.Error(), "last") {
		t.Errorf("the error is %v", err)
	}
	if len(lines) < 4 || strings.Contains(lines[0], "\033") {
		t.Errorf("the lines are %.100q", lines)
	}
}

// TestQuiet checks that the policy exists only while packages are installed. A policy of the
// machine stays, and one left by a killed run is removed.
func TestQuiet(t *testing.T) {
	path := filepath.Join(t.TempDir(), "policy-rc.d")
	for what, before := range map[string]string{"none": "", "own": "#!/bin/sh\nexit 0\n", "left": denyPolicy} {
		_ = os.Remove(path)
		if before != "" {
			if err := os.WriteFile(path, []byte(before), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		end, err := suppressServices(path)
		if err != nil {
			t.Fatal(err)
		}
		during, _ := os.ReadFile(path)
		end()
		after, _ := os.ReadFile(path)
		want, then := denyPolicy, ""
		if what == "own" {
			want, then = before, before
		}
		if string(during) != want || string(after) != then {
			t.Errorf("%s: %q, then %q", what, during, after)
		}
	}
}
