package test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"orrery/internal/image"
)

const mirrorSite = `
image.debian.suite = "bookworm"
network.cam = { subnet = "10.99.95.0/24" }
defaults.requirements = "requirements/v1.txt"
node.one = { id = 1, roles = ["tool"] }
node.two = { id = 2, roles = ["sized"], simulated_by = "sized-sim" }
release.2.requirements = "requirements/v2.txt"
`

var mirrorFiles = files{
	"requirements/v1.txt":       "six==1.16.0\n",
	"requirements/v2.txt":       "six==1.17.0 --hash=sha256:4721f391ed90541fddacab5acf947aa0d3dc7d27b2e1e8eda2be8970586c3274\n",
	"roles/tool/role.toml":      "apt = [\"tree\"]\npip = [\"six\"]\n",
	"roles/sized/role.toml":     "",
	"roles/sized-sim/role.toml": "apt = [\"hello\"]\n",
}

// TestMirror: the packages of a site are downloaded into a mirror. If nothing else can be reached,
// the same layers are built from them.
func TestMirror(t *testing.T) {
	t.Parallel()
	s := newSite(t, "it-mirror", mirrorSite, mirrorFiles)
	dir := filepath.Join(t.TempDir(), "mirror")
	s.run("mirror", "pull", dir).want(0, `fetched and \d+ copied from this host's cache`, `apt  = "file://`+dir+`/apt"`)
	ok := t.Run("Again", func(t *testing.T) { mirrorAgain(s.of(t), dir) }) &&
		t.Run("Offline", func(t *testing.T) { mirrorOffline(s.of(t), dir) })
	if ok {
		t.Run("Killed", func(t *testing.T) { mirrorKilled(s.of(t), dir) })
		t.Run("Prune", func(t *testing.T) { mirrorPrune(s.of(t), dir) })
	}
}

// mirrorAgain: existing files are not downloaded again, unless they are damaged.
func mirrorAgain(s *site, dir string) {
	old := stamps(s, dir)
	s.run("mirror", "pull", dir).want(0, `nothing to fetch: \d+ Debian packages and 2 Python packages exist`)
	if now := stamps(s, dir); now != old {
		s.Errorf("a pull of nothing wrote\n%s\nwhere was\n%s", now, old)
	}
	deb, wheel := only(s, dir+"/apt/pool/bookworm/t/tree/*.deb"), only(s, dir+"/pypi/simple/six/six-1.16.0-*.whl")
	for _, path := range []string{deb, wheel} {
		before, err := os.ReadFile(path)
		if err != nil {
			s.Fatal(err)
		}
		damaged := slices.Clone(before)
		damaged[len(damaged)/2] ^= 1
		if err := os.WriteFile(path, damaged, 0o644); err != nil {
			s.Fatal(err)
		}
		s.run("mirror", "pull", dir).want(0, `fetched and \d+ copied`)
		if after, err := os.ReadFile(path); err != nil || string(after) != string(before) {
			s.Errorf("%s is still damaged: %v", path, err)
		}
	}
	// A site that is built from the mirror still fills it from the archives.
	s.edit("site.toml", "network.cam",
		fmt.Sprintf("mirror = { apt = \"file://%s/apt\", pypi = \"file://%s/pypi/simple\" }\nnetwork.cam", dir, dir))
	s.run("mirror", "pull").want(0, regexp.QuoteMeta(dir)+": nothing to fetch")
	s.edit("site.toml", fmt.Sprintf("mirror = { apt = \"file://%s/apt\", pypi = \"file://%s/pypi/simple\" }\n", dir,
		dir), "")
}

// stamps returns the modification time of each file of a directory.
func stamps(s *site, dir string) string {
	s.Helper()
	out, err := sh("find " + dir + " -type f -printf '%T@ %i %p\\n' | grep -v '/\\.' | sort")
	if err != nil {
		s.Fatal(err)
	}
	return out
}

func only(s *site, pattern string) string {
	s.Helper()
	found := glob(pattern)
	if len(found) != 1 {
		s.Fatalf("%s: %v", pattern, found)
	}
	return found[0]
}

// cutOff runs a command in a separate network without any route. LXC looks for bridges in sysfs.
const cutOff = `set -e
ip link set lo up
groups=$(mktemp -d)
mount --rbind /sys/fs/cgroup $groups
mount -t sysfs sysfs /sys
mount --rbind $groups /sys/fs/cgroup
umount -l $groups; rmdir $groups
! ip route get 9.9.9.9 2>/dev/null
orrery() { "$PROGRAM" -C "$SITE" "$@"; }
status=0
orrery up && orrery stage all --release 2 && orrery status || status=$?
orrery down
exit $status`

// mirrorOffline starts a site and stages a release where only the mirror can be reached and this
// host has no other data. It compares the built layers with those built before.
func mirrorOffline(s *site, dir string) {
	s.do("up") // sets the kernel settings that nodes need, for the whole host
	before := records(s, s.dirs.State)
	state := filepath.Join(s.dirs.State, "offline") // on the disk of the tests
	run := s.dirs.Run + "-offline"
	s.Cleanup(func() { _ = errors.Join(os.RemoveAll(state), os.RemoveAll(run)) })
	away := *s
	away.dir = s.TempDir()
	for path, text := range mirrorFiles {
		away.write(path, text)
	}
	away.write("site.toml", fmt.Sprintf(
		"site.name = \"it-mirror-off\"\n%s\n[mirror]\napt = \"file://%s/apt\"\npypi = \"file://%s/pypi/simple\"\n",
		mirrorSite, dir, dir))
	cmd := exec.Command("unshare", "--net", "--mount", "/bin/sh", "-c", cutOff)
	cmd.Env = append(os.Environ(), "ORRERY_STATE="+state, "ORRERY_RUN="+run, "PROGRAM="+program, "SITE="+away.dir,
		"PIP_FIND_LINKS=")
	began := time.Now()
	out, err := cmd.CombinedOutput()
	if err != nil {
		logs, _ := sh("tail -n 30 " + state + "/log/*.log")
		s.Fatalf("%v\n%s%s", err, out, logs)
	}
	s.Logf("took %s", time.Since(began).Round(time.Second/10))
	if !strings.Contains(string(out), "2 (quarantine)") {
		s.Errorf("release 2 is not in quarantine\n%s", out)
	}
	after := records(s, state)
	if len(after["debian"]) != 1 || len(after["debian + tool"]) != 2 {
		s.Fatalf("built were %d bases and %d layers", len(after["debian"]), len(after["debian + tool"]))
	}
	versions := ""
	for _, title := range []string{"debian", "debian + tool"} {
		for _, record := range after[title] {
			if !slices.ContainsFunc(before[title], func(old image.Record) bool {
				return slices.Equal(old.Packages, record.Packages) && slices.Equal(old.Python, record.Python)
			}) {
				s.Errorf("%s: no layer from before has %v and %v", title, record.Packages, record.Python)
			}
			versions += strings.Join(append(record.Packages, record.Python...), " ") + " "
		}
	}
	for _, want := range []string{" tree=", " six==1.16.0 ", " six==1.17.0 "} {
		if !strings.Contains(versions, want) {
			s.Errorf("%s is in no layer: %s", want, versions)
		}
	}
	s.do("down")
}

// records returns the records of the layers in a store, by title.
func records(s *site, state string) map[string][]image.Record {
	s.Helper()
	all := map[string][]image.Record{}
	for _, path := range glob(state + "/store/*/layer.json") {
		text, err := os.ReadFile(path)
		if os.IsNotExist(err) {
			continue // tests beside this one remove layers
		}
		var r image.Record
		if err == nil {
			err = json.Unmarshal(text, &r)
		}
		if err != nil {
			s.Fatal(err)
		}
		all[r.Title] = append(all[r.Title], r)
	}
	return all
}

// mirrorKilled kills downloads at many moments. A concurrent reader always finds an index with a
// valid signature and digests, and all of its files. The next run continues.
func mirrorKilled(s *site, dir string) {
	for i := range 6 {
		wheel := only(s, dir+"/pypi/simple/six/six-1.16.0-*.whl")
		for _, path := range []string{only(s, dir+"/apt/pool/bookworm/t/tree/*.deb"), wheel} {
			if err := os.Truncate(path, 10); err != nil {
				s.Fatal(err)
			}
		}
		cmd, _, _ := s.command("mirror", "pull", dir)
		wait, err := begin(cmd)
		if err != nil {
			s.Fatal(err)
		}
		time.Sleep(time.Duration(i) * 400 * time.Millisecond)
		_ = cmd.Process.Kill()
		_ = wait()
		mirrorWhole(s, dir)
		s.run("mirror", "pull", dir).want(0)
		mirrorWhole(s, dir)
	}
	if left := glob(dir + "/apt/.dists*"); len(left) > 0 {
		s.Errorf("left are %v", left)
	}
}

// mirrorWhole reads the index as apt does.
func mirrorWhole(s *site, dir string) {
	s.Helper()
	home := s.TempDir()
	script := fmt.Sprintf(`set -e
	gpg --homedir %[2]s --batch --quiet --dearmor --output %[2]s/key %[1]s/apt/key.asc
	for suite in bookworm bookworm-updates bookworm-security; do
		cd %[1]s/apt/dists/$suite
		gpgv --quiet --keyring %[2]s/key InRelease 2>/dev/null
		gpgv --quiet --keyring %[2]s/key Release.gpg Release 2>/dev/null
		sed -n '/^SHA256:/,/^[A-RT-Z]/s/^ \([0-9a-f]\{64\}\) .* \(.*\)$/\1  \2/p' Release | sha256sum --check --quiet
	done
	cd %[1]s/apt
	sed -n 's/^Filename: //p' dists/bookworm/main/binary-*/Packages | while read f; do test -e $f; done`, dir, home)
	if out, err := exec.Command("/bin/sh", "-c", script).CombinedOutput(); err != nil {
		s.Fatalf("the archive is not whole: %v\n%s", err, out)
	}
	page, err := os.ReadFile(dir + "/pypi/simple/six/index.html")
	if err != nil || len(regexp.MustCompile(`six-1\.1[67]\.0-\S+#sha256=[0-9a-f]{64}"`).FindAll(page, -1)) != 2 {
		s.Fatalf("%v\n%s", err, page)
	}
}

// mirrorPrune: files that no layer needs stay until they are removed on request.
func mirrorPrune(s *site, dir string) {
	s.edit("site.toml", "release.2.requirements = \"requirements/v2.txt\"\n", "")
	s.edit("site.toml", `, simulated_by = "sized-sim"`, "")
	s.run("mirror", "pull", dir).want(0, "nothing to fetch")
	only(s, dir+"/apt/pool/bookworm/h/hello/*.deb")
	s.run("mirror", "pull", "--prune", dir).want(0, "2 files that no layer needs removed")
	if left := append(glob(dir+"/apt/pool/bookworm/h/hello"), glob(dir+"/pypi/simple/six/six-1.17*")...); len(left) > 0 {
		s.Errorf("left are %v", left)
	}
	index, err := os.ReadFile(only(s, dir+"/apt/dists/bookworm/main/binary-*/Packages"))
	if err != nil || strings.Contains(string(index), "Package: hello\n") ||
		!strings.Contains(string(index), "Package: tree\n") {
		s.Errorf("the index is wrong: %v", err)
	}
}
