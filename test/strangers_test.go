package test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
)

const nobody = 65534

// TestStrangers: a user of the host can neither read nor write anything of a site on it, whatever
// its paths are, nor list a directory.
//
// Promise (Other users of the host): They can read, write and list nothing in a site's state or run
// directory. With host.TestClose.
func TestStrangers(t *testing.T) {
	t.Parallel()
	const value = "stranger-Wq81-secret"
	outside := t.TempDir()
	if err := os.WriteFile(filepath.Join(outside, "key"), []byte(value), 0o600); err != nil {
		t.Fatal(err)
	}
	s := newSite(t, "it-strangers", `
[network.lan]
subnet = "10.99.122.0/24"
[image.debian]
suite = "bookworm"
[node.one]
id = 10
roles = ["holder"]
[secret.key]
file = "`+outside+`/key"
[secret.made]
generate = 40
[release.701]
`, files{
		"roles/holder/role.toml": `
[[secret]]
name = "key"
mode = "0444"
[[secret]]
name = "made"
[[file]]
path = "/etc/holder.conf"
template = "holder.conf.tmpl"
[[volume]]
name = "data"
path = "/srv/data"
mode = "0777"
[[step]]
name = "write"
when = "boot"
script = "echo here > /srv/data/open; chmod 0666 /srv/data/open; cat /etc/holder.conf"
`,
		"roles/holder/holder.conf.tmpl": "key={{secret \"key\"}}\n",
	})
	s.do("up")
	s.do("stage", "--release", "701")
	s.do("snapshot")
	if got := s.sh("one", "su -s /bin/sh nobody -c 'cat /etc/orrery/secrets/key /srv/data/open; ls /etc/orrery'"); !strings.Contains(got,
		value) || !strings.Contains(got, "here") {
		t.Errorf("in the node, its users see %q", got)
	}
	loosen(s) // as a former version had them
	s.do("up")
	wantClosed(t, s.closedTo(nobody, 50, s.dirs.State, s.dirs.Run))
}

// loosen sets the modes of a host's files and directories to those of former versions.
func loosen(s *site) {
	for _, path := range append(glob(s.dirs.State+"/sites/"+s.name+"/*"), s.dirs.State, s.dirs.Run, s.dirs.Run+"/sites",
		s.dirs.Run+"/sites/"+s.name, s.dirs.State+"/sites") {
		if info, err := os.Stat(path); err == nil && info.IsDir() && filepath.Base(path) != "volumes" {
			_ = os.Chmod(path, 0o755)
		} else if err == nil {
			_ = os.Chmod(path, info.Mode().Perm()|0o044)
		}
	}
}

func wantClosed(t *testing.T, open []string) {
	t.Helper()
	for _, line := range open {
		t.Errorf("a stranger can %s", line)
	}
}

// closedTo returns what a user of the host can do with any path below some directories. Root finds
// the paths, of which there must be at least a given number.
func (s *site) closedTo(uid uint32, atLeast int, tops ...string) []string {
	s.Helper()
	var paths strings.Builder
	for _, top := range tops {
		err := filepath.WalkDir(top, func(path string, e fs.DirEntry, err error) error {
			if err == nil && filepath.Dir(path) == s.dirs.State &&
				slices.Contains([]string{"spead2", "ansible", "docs", "engine", "homes"}, e.Name()) {
				return fs.SkipDir // programs of the tests, and directories that other tests keep separate
			}
			if err == nil && e.Type()&fs.ModeSymlink == 0 {
				paths.WriteString(path + "\n")
			}
			if err == nil && e.IsDir() && e.Name() == "tree" {
				return fs.SkipDir // a layer
			}
			return nil // a path that is removed meanwhile existed only for a moment
		})
		if err != nil {
			s.Fatal(err)
		}
	}
	const ask = `while IFS= read -r p; do [ -r "$p" ] && echo "read $p"; [ -w "$p" ] && echo "write $p"; done; echo asked`
	cmd := exec.Command("/bin/sh", "-c", ask)
	cmd.Dir, cmd.Stdin = "/", strings.NewReader(paths.String())
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uid, Gid: uid}}
	out, err := cmd.CombinedOutput()
	lines := strings.Split(strings.TrimSpace(string(out)), "\n")
	if err != nil || lines[len(lines)-1] != "asked" || strings.Count(paths.String(), "\n") < atLeast {
		s.Fatalf("%v\n%s", err, out)
	}
	return lines[:len(lines)-1]
}
