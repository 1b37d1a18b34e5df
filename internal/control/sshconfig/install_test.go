package sshconfig

import (
	"net/netip"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"orrery/internal/problem"
	"orrery/internal/site"
)

func karoo(name string) *site.Site {
	return &site.Site{Name: name, Nodes: []site.Node{{Name: "portal", ID: 1,
		NICs: []site.NIC{{Network: "cam", Address: netip.MustParseAddr("10.8.67.11")}}}}}
}

// atHome makes an empty home directory for the caller, and a file with host keys.
func atHome(t *testing.T) (home, keys string) {
	t.Helper()
	home = t.TempDir()
	original := caller
	t.Cleanup(func() { caller = original })
	caller = func() (*user.User, error) {
		return &user.User{Uid: strconv.Itoa(os.Getuid()), Gid: strconv.Itoa(os.Getgid()), HomeDir: home}, nil
	}
	keys = filepath.Join(t.TempDir(), "known_hosts")
	put(t, keys, "portal.karoo ssh-ed25519 AAAA\n", 0o600)
	return home, keys
}

func put(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	must(t, os.MkdirAll(filepath.Dir(path), 0o700))
	must(t, os.WriteFile(path, []byte(text), mode))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path ...string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(path...))
	must(t, err)
	return string(text)
}

func install(t *testing.T, name, keys string) *Installed {
	t.Helper()
	done, err := Install(karoo(name), keys)
	must(t, err)
	return done
}

// TestInstall: each site has a file of its own, and one line includes all of them, however often they
// are installed. After the last site is removed, everything is as before.
func TestInstall(t *testing.T) {
	home, keys := atHome(t)
	const own = "Host gate\n    User ada\n"
	put(t, filepath.Join(home, ".ssh/config"), own, 0o644)
	for range 2 {
		if done := install(t, "karoo", keys); !done.Keys || done.File != filepath.Join(home, ".ssh/orrery.d/karoo.conf") {
			t.Errorf("%+v", done)
		}
	}
	install(t, "lab", keys)
	if got := read(t, home, ".ssh/config"); got != "Include orrery.d/*.conf\n"+own {
		t.Errorf("the configuration is %q", got)
	}
	text := read(t, home, ".ssh/orrery.d/karoo.conf")
	for _, word := range []string{"\nHost portal.karoo 10.8.67.11\n", "UserKnownHostsFile " + home, "StrictHostKeyChecking yes"} {
		if !strings.Contains(text, word) {
			t.Errorf("%q is not in\n%s", word, text)
		}
	}
	if got := read(t, home, ".ssh/orrery.d/karoo.known_hosts"); got != "portal.karoo ssh-ed25519 AAAA\n" {
		t.Errorf("the host keys are %q", got)
	}
	for name, want := range map[string]os.FileMode{
		".ssh/config": 0o644, ".ssh/orrery.d/karoo.conf": 0o600, ".ssh/orrery.d": 0o700,
	} {
		if info, err := os.Stat(filepath.Join(home, name)); err != nil || info.Mode().Perm() != want {
			t.Errorf("%s: %v %v", name, info.Mode(), err)
		}
	}
	for i, name := range []string{"karoo", "karoo", "lab"} {
		_, err := Uninstall(name)
		must(t, err)
		if got := read(t, home, ".ssh/config"); strings.Contains(got, include) != (i < 2) {
			t.Errorf("after removing %s, the configuration is %q", name, got)
		}
	}
	if got := read(t, home, ".ssh/config"); got != own {
		t.Errorf("left is %q", got)
	}
	if left, err := os.ReadDir(filepath.Join(home, ".ssh")); err != nil || len(left) != 1 {
		t.Errorf("left is %v %v", left, err)
	}
}

// TestInstallInEmptyHome: without ~/.ssh, it is made. Before the first up there are no host keys.
func TestInstallInEmptyHome(t *testing.T) {
	home, keys := atHome(t)
	must(t, os.Remove(keys))
	if done := install(t, "karoo", keys); done.Keys {
		t.Errorf("%+v", done)
	}
	if got := read(t, home, ".ssh/config"); got != include+"\n" {
		t.Errorf("the configuration is %q", got)
	}
	_, err := Uninstall("karoo")
	must(t, err)
	if got := read(t, home, ".ssh/config"); got != "" {
		t.Errorf("left is %q", got)
	}
}

// TestLinks: a configuration that is a link stays one. Nothing outside of the home directory is
// written.
func TestLinks(t *testing.T) {
	for _, absolute := range []bool{false, true} {
		home, keys := atHome(t)
		put(t, filepath.Join(home, "dotfiles/ssh"), "Host a\n", 0o600)
		to := "../dotfiles/ssh"
		if absolute {
			to = filepath.Join(home, "dotfiles/ssh")
		}
		must(t, os.Mkdir(filepath.Join(home, ".ssh"), 0o700))
		must(t, os.Symlink(to, filepath.Join(home, ".ssh/config")))
		install(t, "karoo", keys)
		if got := read(t, home, "dotfiles/ssh"); got != include+"\nHost a\n" {
			t.Errorf("the file is %q", got)
		}
		if got, err := os.Readlink(filepath.Join(home, ".ssh/config")); err != nil || got != to {
			t.Errorf("the link is %q %v", got, err)
		}
	}
	outside := filepath.Join(t.TempDir(), "config")
	put(t, outside, "Host a\n", 0o600)
	for _, name := range []string{".ssh/config", ".ssh/orrery.d", ".ssh"} {
		home, keys := atHome(t)
		must(t, os.MkdirAll(filepath.Dir(filepath.Join(home, name)), 0o700))
		to := outside
		if name != ".ssh/config" {
			to = filepath.Dir(outside)
		}
		must(t, os.Symlink(to, filepath.Join(home, name)))
		if _, err := Install(karoo("karoo"), keys); err == nil {
			t.Errorf("%s leads out of the home directory and was followed", name)
		}
		if left, err := os.ReadDir(filepath.Dir(outside)); err != nil || len(left) != 1 || read(t, outside) != "Host a\n" {
			t.Errorf("outside is %v %v", left, err)
		}
	}
}

// TestNotInstalled: what cannot be installed is reported with a cure.
func TestNotInstalled(t *testing.T) {
	home, keys := atHome(t)
	twin := karoo("karoo")
	twin.Twin = "dev1"
	if _, err := Install(twin, keys); problem.ExitCode(err) != int(problem.Usage) {
		t.Errorf("a twin: %v", err)
	}
	if os.Geteuid() != 0 {
		must(t, os.Chmod(keys, 0))
		if _, err := Install(karoo("karoo"), keys); err == nil ||
			!strings.Contains(err.Error(), "sudo orrery ssh-config --install") {
			t.Errorf("unreadable host keys: %v", err)
		}
		must(t, os.Chmod(keys, 0o600))
	}
	must(t, os.MkdirAll(filepath.Join(home, ".ssh/config"), 0o700))
	if _, err := Install(karoo("karoo"), keys); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("a directory: %v", err)
	}
}
