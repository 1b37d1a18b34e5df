package test

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/klauspost/compress/zstd"
	"golang.org/x/sys/unix"
)

// keeping is a site whose nodes have data to lose: private layers, volumes of all kinds, and
// secrets.
var keeping = files{
	"roles/keep/role.toml": `
services = ["keep.service"]
[[file]]
path = "/etc/systemd/system/keep.service"
content = """
[Service]
ExecStart=/usr/bin/sleep infinity
[Install]
WantedBy=multi-user.target
"""
[[file]]
path = "/etc/keep.conf"
template = "keep.conf.tmpl"
[[secret]]
name = "token"
[[volume]]
name = "data"
path = "/srv/data"
[[volume]]
name = "common"
path = "/srv/common"
[[volume]]
name = "outside"
path = "/srv/outside"
[[step]]
name = "count"
when = "boot"
script = "[ -e /srv/data/boots ] || echo once > /srv/data/boots; touch /run/applied"
[[health]]
command = ["systemctl", "is-active", "keep.service"]
`,
	"roles/keep/keep.conf.tmpl": `token={{secret "token"}}` + "\n",
}

const keepingSite = `
[network.lan]
subnet = "10.99.%[1]d.0/24"
gateway = "10.99.%[1]d.1"
nat = true
[image.debian]
suite = "bookworm"
[defaults]
memory = "128MiB"
[node."keep{0..1}"]
id = 10
roles = ["keep"]
[secret.token]
generate = 24
[volume.common]
shared = true
[volume.outside]
path = "%[2]s"
`

func newKeeping(t *testing.T, name string, net int) *site {
	outside := filepath.Join(t.TempDir(), "outside")
	if err := os.Mkdir(outside, 0o755); err != nil {
		t.Fatal(err)
	}
	return newSite(t, name, fmt.Sprintf(keepingSite, net, outside), keeping)
}

func (s *site) state(parts ...string) string {
	return filepath.Join(append([]string{s.dirs.Site(s.name)}, parts...)...)
}

// populate writes everything that a file system can contain into the private layer and the volumes
// of keep0.
func (s *site) populate() {
	s.Helper()
	s.sh("keep0", `set -e
mkdir -p /root/kept/inner; cd /root/kept
echo text > text; ln text inner/same; ln -s ../nowhere link; mkfifo -m 622 fifo
cp /bin/true setuid; chmod 4755 setuid
printf odd > "$(printf 'odd \377\n"name')"
truncate -s 1G sparse; printf middle | dd of=sparse bs=1 seek=536875008 conv=notrunc status=none
python3 - <<'EOF'
import os
os.setxattr("text", "user.note", b"n\0te")
os.setxattr("setuid", "security.capability", bytes.fromhex("0100000200040000000000000000000000000000"))
EOF
touch -d '2001-09-09 01:46:40.123456789' text
rm /etc/debian_version
rm -r /usr/share/common-licenses; mkdir /usr/share/common-licenses; echo mine > /usr/share/common-licenses/mine
cp -a /root/kept/. /srv/data/kept 2>/dev/null || cp -r --preserve=all /root/kept /srv/data/kept
echo both > /srv/common/shared; echo out > /srv/outside/file
dd if=/dev/urandom of=/srv/data/random bs=1M count=12 status=none
for i in $(seq 300); do echo "$i" > /srv/data/small-$i; done
sync`)
	data := s.state("volumes/data/keep0")
	acl := []byte{2, 0, 0, 0, 1, 0, 6, 0, 255, 255, 255, 255, 2, 0, 4, 0, 33, 0, 0, 0, 4, 0, 4, 0, 255, 255, 255, 255,
		16, 0, 4, 0, 255, 255, 255, 255, 32, 0, 0, 0, 255, 255, 255, 255}
	must(s.T, os.WriteFile(filepath.Join(data, "acl"), []byte("x"), 0o640))
	must(s.T, unix.Setxattr(filepath.Join(data, "acl"), "system.posix_acl_access", acl, 0))
	must(s.T, os.Mkdir(filepath.Join(data, "inherits"), 0o755))
	must(s.T, os.WriteFile(filepath.Join(data, "inherits/file"), []byte("x"), 0o600))
	must(s.T, unix.Setxattr(filepath.Join(data, "inherits"), "system.posix_acl_default", acl, 0))
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// treeOf describes all paths below a directory: type, owner, times, attributes and content.
func treeOf(t *testing.T, dir string) []string {
	t.Helper()
	var lines []string
	err := filepath.WalkDir(dir, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		var st unix.Stat_t
		if err := unix.Lstat(path, &st); err != nil {
			return err
		}
		rel, _ := filepath.Rel(dir, path)
		line := fmt.Sprintf("%q %o %d:%d %d links=%d", rel, st.Mode, st.Uid, st.Gid, st.Mtim.Nano(), st.Nlink)
		switch st.Mode & unix.S_IFMT {
		case unix.S_IFDIR:
			line = fmt.Sprintf("%q %o %d:%d %d", rel, st.Mode, st.Uid, st.Gid, st.Mtim.Nano())
		case unix.S_IFLNK:
			to, _ := os.Readlink(path)
			line += " -> " + to
		case unix.S_IFREG:
			sum := sha256.New()
			f, err := os.Open(path)
			if err != nil {
				return err
			}
			_, err = io.Copy(sum, f)
			f.Close()
			if err != nil {
				return err
			}
			line += fmt.Sprintf(" %d %x holes=%v", st.Size, sum.Sum(nil), st.Blocks*512 < st.Size)
		case unix.S_IFCHR, unix.S_IFBLK:
			// Whiteouts are hard links to one another.
			line = fmt.Sprintf("%q %o %d:%d %d dev %d", rel, st.Mode, st.Uid, st.Gid, st.Mtim.Nano(), st.Rdev)
		}
		names := make([]byte, 4096)
		n, _ := unix.Llistxattr(path, names)
		attrs := strings.FieldsFunc(string(names[:max(n, 0)]), func(r rune) bool { return r == 0 })
		sort.Strings(attrs)
		for _, name := range attrs {
			if slices.Contains([]string{"trusted.overlay.origin", "trusted.overlay.impure", "trusted.overlay.uuid"}, name) {
				continue
			}
			value := make([]byte, 4096)
			n, _ := unix.Lgetxattr(path, name, value)
			line += fmt.Sprintf(" %s=%x", name, value[:max(n, 0)])
		}
		lines = append(lines, line)
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return lines
}

func wantTree(t *testing.T, what string, before, after []string) {
	t.Helper()
	present := map[string]bool{}
	for _, line := range after {
		present[line] = true
	}
	for _, line := range before {
		if !present[line] {
			t.Errorf("%s: it is not as it was: %s", what, line)
		}
	}
	if len(after) != len(before) {
		t.Errorf("%s: %d paths, then %d", what, len(before), len(after))
	}
}

// holdings are the trees of a site that must be restored.
func (s *site) holdings() map[string][]string {
	s.Helper()
	return s.holdingsIn(s.dirs.Site(s.name))
}

func (s *site) holdingsIn(state string) map[string][]string {
	upper := filepath.Join(state, "nodes/10/private/upper")
	return map[string][]string{
		"private layer":   treeOf(s.T, filepath.Join(upper, "root/kept")),
		"opaque":          treeOf(s.T, filepath.Join(upper, "usr/share/common-licenses")),
		"whiteout":        treeOf(s.T, filepath.Join(upper, "etc/debian_version")),
		"volume of keep0": treeOf(s.T, filepath.Join(state, "volumes/data/keep0")),
		"volume of keep1": treeOf(s.T, filepath.Join(state, "volumes/data/keep1")),
		"shared volume":   treeOf(s.T, filepath.Join(state, "volumes/common/@all")),
	}
}

func (s *site) wantHoldings(before, after map[string][]string) {
	s.Helper()
	for what, lines := range before {
		wantTree(s.T, what, lines, after[what])
	}
}

// backupsOf returns the output of `backup ls`.
func (s *site) backupsOf(where string) []struct {
	ID      string
	Nodes   int
	Volumes int
} {
	s.Helper()
	var all []struct {
		ID      string
		Nodes   int
		Volumes int
	}
	if err := json.Unmarshal(replied(s.do("backup", "ls", "--json", where)), &all); err != nil {
		s.Fatal(err)
	}
	return all
}

// wantNowhere wants that none of some texts is in a backup, compressed or not.
func wantNowhere(t *testing.T, where string, texts ...string) {
	t.Helper()
	open, err := zstd.NewReader(nil)
	must(t, err)
	seen := 0
	look := func(name string, content []byte) {
		if strings.HasSuffix(name, ".zst") {
			seen++
			if content, err = open.DecodeAll(content, nil); err != nil {
				t.Fatal(name, err)
			}
		}
		for _, text := range texts {
			if bytes.Contains(content, []byte(text)) {
				t.Errorf("%s: %s has a secret in it", where, name)
			}
		}
	}
	if info, err := os.Stat(where); err == nil && info.IsDir() {
		must(t, filepath.WalkDir(where, func(path string, e fs.DirEntry, err error) error {
			if err != nil || e.IsDir() {
				return err
			}
			content, err := os.ReadFile(path)
			look(path, content)
			return err
		}))
	} else {
		f, err := os.Open(where)
		must(t, err)
		defer f.Close()
		archive := tar.NewReader(f)
		for {
			h, err := archive.Next()
			if errors.Is(err, io.EOF) {
				break
			}
			must(t, err)
			content, err := io.ReadAll(archive)
			must(t, err)
			look(h.Name, content)
		}
	}
	if seen == 0 {
		t.Error("there is nothing in the backup")
	}
}

// secretsOf returns everything that must not be in a backup unencrypted.
func (s *site) secretsOf() []string {
	s.Helper()
	token, err := os.ReadFile(s.state("secrets/token"))
	must(s.T, err)
	key, err := os.ReadFile(s.state("keys/keep0/ssh_host_ed25519_key"))
	must(s.T, err)
	lines := strings.Split(string(key), "\n")
	return []string{string(token), lines[2]}
}

// elsewhere returns the site on a machine that has never had it.
func (s *site) elsewhere() *site {
	s.Helper()
	other := s.at(newBareHome(s.T, "elsewhere"))
	s.Cleanup(func() {
		if r := other.run("down", "--volumes", "--yes-volumes", s.name); r.status != 0 {
			s.Errorf("down elsewhere: %s%s", r.out, r.errs)
		}
	})
	return other
}

// TestBackup: a backup is restored, on the same host and on one that never had the site, and the
// nodes are healthy.
func TestBackup(t *testing.T) {
	t.Parallel()
	s := newKeeping(t, "it-backup", 85)
	at := t.TempDir()
	repository, file, phrase := filepath.Join(at, "backups")+"/", filepath.Join(at, "file.orrery"),
		filepath.Join(at, "phrase")
	must(t, os.WriteFile(phrase, []byte("correct horse\n"), 0o600))
	s.do("up")
	s.populate()
	secrets := s.secretsOf()
	s.run("backup", repository).want(0, "Not included: secrets", "The nodes were paused for")
	second := s.run("backup", repository).want(0, "2 nodes and 5 volumes")
	t.Logf("unchanged: %s\n%s", second.took.Round(time.Millisecond), second.out)
	s.do("snapshot")
	s.run("backup", file, "--with-layers", "--snapshots", "--secrets-passphrase-file", phrase).want(0)
	s.run("backup", file).want(2, "already")
	before := s.holdings()
	s.run("backup", "verify", file).want(0, "whole")
	s.run("backup", "verify", repository).want(0, "whole")
	if n := len(s.backupsOf(repository)); n != 2 {
		t.Errorf("%d backups", n)
	}
	s.rots(repository)
	s.picks(repository, file)
	wantNowhere(t, repository, secrets...)
	wantNowhere(t, file, secrets...)
	s.run("exec", "all", "--", "systemctl", "is-system-running", "--wait").want(0) // the nodes continue

	restored := filepath.Join(at, "restored")
	s.run("restore", "--yes-paths", s.name, repository, "--dir", restored).want(9, "already", "--replace")
	s.do("down", "--volumes", "--yes-volumes", s.name)
	must(t, os.RemoveAll(s.dirs.Site(s.name)))
	outside := filepath.Join(filepath.Dir(s.outside()), "outside")
	must(t, os.RemoveAll(outside))

	t.Run("same host, layers in the store", func(t *testing.T) {
		s := s.of(t)
		must(t, os.MkdirAll(restored, 0o755))
		must(t, os.WriteFile(filepath.Join(restored, "other.toml"), nil, 0o600))
		s.run("restore", "--yes-paths", s.name, repository, "--dir", restored).want(2, "differs from the backup")
		must(t, os.RemoveAll(restored))
		s.run("restore", repository, "--dir", restored).want(9, "outside", outside, "--yes-paths")
		if _, err := os.Stat(outside); err == nil {
			t.Error("a volume came back to a directory that nobody agreed to")
		}
		s.run("restore", "--yes-paths", s.name, repository, "--dir", restored).want(0, "SSH host keys were replaced")
		s.dir = restored
		s.settled()
		s.wantHoldings(before, s.holdings())
		wantBack(s, outside)
		s.sh("keep0", "test -e /run/applied") // with a new secret, roles are applied again
		if s.secretsOf()[0] == secrets[0] {
			t.Error("the token is the same, but was in no backup")
		}
		s.do("down", "--volumes", "--yes-volumes", s.name)
	})
	must(t, os.RemoveAll(s.dirs.Site(s.name)))
	must(t, os.RemoveAll(outside))

	t.Run("another host", func(t *testing.T) {
		other := s.of(t).elsewhere()
		dir := filepath.Join(at, "elsewhere")
		other.run("restore", "--trust-layers", "--yes-paths", other.name, file, "--dir", dir, "--secrets-passphrase-file",
			filepath.Join(s.dir, "site.toml")).want(9, "decrypt")
		if _, err := os.Stat(dir); err == nil {
			t.Error("it was refused, but something was done")
		}
		other.run("restore", "--trust-layers", "--yes-paths", other.name, file, "--dir", dir, "--secrets-passphrase-file",
			phrase).want(0)
		other.dir = dir
		other.sh("keep0", "test ! -e /run/applied") // boot steps are not repeated
		other.settled()
		other.wantHoldings(before, other.holdings())
		wantBack(other, outside)
		other.sh("keep0", "rm -r /root/kept; echo changed > /srv/common/shared")
		var snapshots []struct{ ID string }
		must(t, json.Unmarshal(replied(other.do("snapshot", "ls", "--json")), &snapshots))
		other.do("snapshot", "restore", snapshots[0].ID, "--yes-restore", s.name)
		wantBack(other, outside)
		if token, _ := os.ReadFile(other.state("secrets/token")); string(token) != secrets[0] {
			t.Error("the token is another")
		}
		if got := other.sh("keep0", "cat /etc/keep.conf"); got != "token="+secrets[0] {
			t.Errorf("keep.conf: %q", got)
		}
	})
}

// rots damages a block twice. The next backup repairs it once, and repair the other time.
func (s *site) rots(repository string) {
	s.Helper()
	rot := func() {
		largest, size := "", int64(0) // not compressible: that is /srv/data/random
		for _, path := range glob(filepath.Join(repository, "blocks/*/*.zst")) {
			if info, err := os.Stat(path); err == nil && info.Size() > size {
				largest, size = path, info.Size()
			}
		}
		block, err := os.ReadFile(largest)
		must(s.T, err)
		block[len(block)/2] ^= 1
		must(s.T, os.WriteFile(largest, block, 0o600))
		// /srv/data/random may begin in the block in which a private layer ends.
		s.run("backup", "verify", repository).want(1, "damaged", "which holds (volume|private)/", "backup repair")
	}
	rot()
	s.run("backup", repository).want(0, "damaged in", "were written again", "were read again")
	s.run("backup", "verify", repository).want(0, "whole")
	rot()
	s.run("backup", "repair", repository).want(0, "1 of them damaged", "is whole again")
	s.run("backup", "verify", repository).want(0, "whole")
}

// picks restores a file and a node from backups while the site is up.
func (s *site) picks(repository, file string) {
	s.Helper()
	to := s.TempDir()
	s.run("restore", repository, "--file", "keep0:/srv/data/boots", "--file", "keep0:/root/kept/inner", "--dir", to).
		want(0, filepath.Join(to, "boots"))
	for name, want := range map[string]string{"boots": "once\n", "inner/same": "text\n"} {
		if text, _ := os.ReadFile(filepath.Join(to, name)); string(text) != want {
			s.Errorf("%s: %q", name, text)
		}
	}
	s.run("restore", repository, "--file", "keep0:/srv/data/boots", "--dir", to).want(9, "already")
	s.run("restore", repository, "--file", "keep0:/srv/data/boots", "--replace").want(2, "--replace")
	s.run("restore", file, "--node", "keep1", "--dir", filepath.Join(to, "keep1")).want(0)
	for _, name := range []string{"private/etc/hostname", "volumes/data/boots", "volumes/common/shared",
		"volumes/outside"} {
		if _, err := os.Stat(filepath.Join(to, "keep1", name)); err != nil {
			s.Error(err)
		}
	}
}

// outside is the directory of the volume that the site file names.
func (s *site) outside() string {
	text, err := os.ReadFile(filepath.Join(s.dir, "site.toml"))
	must(s.T, err)
	_, after, _ := strings.Cut(string(text), "[volume.outside]\npath = \"")
	path, _, _ := strings.Cut(after, `"`)
	return path
}

// wantBack asks the nodes themselves.
func wantBack(s *site, outside string) {
	s.Helper()
	if text, _ := os.ReadFile(filepath.Join(outside, "keep0/file")); string(text) != "out\n" {
		s.Errorf("outside: %q", text)
	}
	for script, want := range map[string]string{
		"cat /srv/data/boots":                      "once",
		"cat /root/kept/inner/same":                "text",
		"test -e /etc/debian_version || echo gone": "gone",
		"ls /usr/share/common-licenses":            "mine",
		"cat /srv/common/shared":                   "both",
		"python3 -c 'import os; print(len(os.getxattr(\"/root/kept/setuid\", \"security.capability\")))'": "20",
		"systemctl is-system-running --wait":                "running",
		"stat -c %h /root/kept/text":                        "2",
		"test -s /etc/ssh/ssh_host_ed25519_key && echo has": "has",
		"stat -c '%U %a' /etc/ssh/ssh_host_ed25519_key":     "root 600",
	} {
		if got := s.sh("keep0", script); got != want {
			s.Errorf("%s: %q, want %q", script, got, want)
		}
	}
}

// TestBackupDamage: any damaged backup is refused completely, and nothing is changed.
func TestBackupDamage(t *testing.T) {
	t.Parallel()
	s := newKeeping(t, "it-backup-damage", 86)
	file := filepath.Join(t.TempDir(), "file")
	s.do("up")
	s.do("backup", file)
	s.do("down", "--volumes", "--yes-volumes", s.name)
	must(t, os.RemoveAll(s.dirs.Site(s.name)))
	must(t, os.RemoveAll(s.outside()))
	whole, err := os.ReadFile(file)
	must(t, err)
	dir := filepath.Join(t.TempDir(), "dir")
	random := seed(t)
	for range 12 {
		i := random.IntN(len(whole))
		broken := slices.Clone(whole)
		broken[i] ^= byte(1 + random.IntN(255))
		must(t, os.WriteFile(file, broken, 0o600))
		s.run("restore", "--yes-paths", s.name, file, "--dir", dir).want(1, file, "damaged|another format|no backup")
		for _, path := range []string{dir, s.dirs.Site(s.name), s.outside()} {
			if _, err := os.Lstat(path); err == nil {
				t.Fatalf("byte %d of %d: %s was touched", i, len(whole), path)
			}
		}
	}
	must(t, os.WriteFile(file, whole[:len(whole)/2], 0o600))
	s.run("restore", "--yes-paths", s.name, file, "--dir", dir).want(1, file, "damaged")
}

// TestBackupKill: whenever backup or restore is killed, nodes continue, and the next run completes
// it.
func TestBackupKill(t *testing.T) {
	t.Parallel()
	s := newKeeping(t, "it-backup-kill", 87)
	at := t.TempDir()
	repository, file, dir := filepath.Join(at, "backups")+"/", filepath.Join(at, "file"), filepath.Join(at, "dir")
	random := seed(t)
	s.do("up")
	s.populate()
	whole := s.run("backup", filepath.Join(at, "first")).want(0).took
	killed := 0
	for range 8 {
		for _, where := range []string{repository, file} {
			s.sh("keep0", "dd if=/dev/urandom of=/srv/data/more bs=1M count=6 status=none")
			if s.killed(time.Duration(random.Float64()*float64(whole)), "backup", where) {
				killed++
			}
			s.eventually(func() error { return s.goesOn("keep0") })
			_ = os.Remove(file) // if the backup was faster than the kill
		}
	}
	s.do("backup", repository)
	s.do("backup", "verify", repository)
	s.do("backup", file)
	s.do("backup", "verify", file)
	before := s.holdings()
	s.settled()
	s.do("down", "--volumes", "--yes-volumes", s.name)
	must(t, os.RemoveAll(s.dirs.Site(s.name)))
	must(t, os.RemoveAll(s.outside()))

	took := 6 * time.Second
	for round := range 3 {
		for range 3 {
			if s.killed(time.Duration(random.Float64()*float64(took)), "restore", "--yes-paths", s.name, file, "--dir", dir) {
				killed++
			}
			if round == 1 { // a user who does not know of the restore
				if r := s.run("up"); r.status == 0 {
					if got := s.sh("keep0", "cat /root/kept/text"); got != "text" {
						t.Errorf("up brought up a node without what it had written: %q", got)
					}
				}
			}
		}
		begun := time.Now()
		r := s.run("restore", "--yes-paths", s.name, file, "--dir", dir)
		if r.status == 9 { // it had finished, or was far enough for up to complete it
			s.do("up")
		} else {
			r.want(0)
		}
		s.dir = dir
		s.do("up")
		took = min(took, time.Since(begun))
		s.settled()
		s.wantHoldings(before, s.holdings())
		if _, err := os.Stat(s.state("restore")); err == nil {
			t.Error("something of the restore is left")
		}
		s.do("down", "--volumes", "--yes-volumes", s.name)
		must(t, os.RemoveAll(s.outside()))
		must(t, os.RemoveAll(dir))
	}
	t.Logf("killed %d runs", killed)
}

// goesOn checks that a node's processes are not frozen.
func (s *site) goesOn(node string) error {
	cmd, _, _ := s.command("shell", node, "--", "true")
	wait, err := begin(cmd)
	if err != nil {
		return err
	}
	impatient := time.AfterFunc(30*time.Second, func() { _ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) })
	defer impatient.Stop()
	return wait()
}

// TestRestoreBeside: a backup is restored as a twin while the site keeps running, and in place of
// the site if requested.
func TestRestoreBeside(t *testing.T) {
	t.Parallel()
	home := newHome(t, "beside")
	s := newKeeping(t, "it-backup-beside", 88)
	s.keepIn(home)
	repository := filepath.Join(t.TempDir(), "backups") + "/"
	s.do("up")
	s.populate()
	s.do("backup", repository)
	before := s.holdings()
	s.sh("keep0", "echo later > /srv/data/later; rm /root/kept/text; echo changed > /srv/outside/file; sync")
	s.do("backup", "keep1", repository)
	first := s.backupsOf(repository)[0].ID

	s.run("restore", repository, "--to", "Bad Name").want(2, "is not valid")
	t.Cleanup(func() { s.run("twin", "destroy", "before") })
	s.run("restore", repository+"@"+first, "--to", "before").want(0)
	twin := s.dirs.Site(s.name + ".before")
	s.wantHoldings(before, s.holdingsIn(twin))
	if got := s.do("--twin", "before", "shell", "keep0", "--", "cat", "/srv/outside/file",
		"/root/kept/text"); got != "out\ntext\n" {
		t.Errorf("in the twin: %q", got)
	}
	s.run("--twin", "before", "status").want(0)
	if got := s.sh("keep0", "cat /srv/data/later /srv/outside/file"); got != "later\nchanged" {
		t.Errorf("the original has changed: %q", got)
	}
	s.settled()
	s.run("restore", repository+"@"+first, "--to", "before").want(9, "already")
	s.do("twin", "destroy", "before")
	if _, err := os.Stat(twin); err == nil {
		t.Error("something of the twin is left")
	}

	s.run("restore", "--yes-paths", s.name, repository+"@"+first, "--dir", s.dir, "--replace").want(9, "not confirmed")
	if got := s.sh("keep0", "cat /srv/data/later"); got != "later" {
		t.Errorf("it was refused, but something was done: %q", got)
	}
	replace := []string{"restore", "--yes-paths", s.name, repository + "@" + first, "--dir", s.dir, "--replace",
		"--yes-replace", s.name}
	took := s.run(replace...).want(0).took
	s.settled()
	s.wantHoldings(before, s.holdings())
	wantBack(s, s.outside())
	s.killsReplacing(replace, took, before)
	s.run("backup", "prune", repository, "--keep", "1").want(0, "1 backup removed")
	s.run("backup", "verify", repository).want(0)
}

// killsReplacing kills a restore in place of the site, early and late. The next command brings the
// site up, either completely unchanged or completely restored.
func (s *site) killsReplacing(replace []string, took time.Duration, before map[string][]string) {
	s.Helper()
	random := seed(s.T)
	const rounds = 4
	former, restored := 0, 0
	for round := range rounds {
		s.sh("keep0", "echo later > /srv/data/later; echo later > /root/kept/text; sync")
		moment := time.Duration((float64(round) + random.Float64()) / rounds * float64(took))
		killed := s.killed(moment, replace...)
		if round%2 == 0 {
			s.reboot()
			s.do("resume")
		} else {
			s.do("up")
		}
		s.settled()
		if _, err := os.Stat(s.state("restore")); err == nil {
			s.Error("something of the restore is left")
		}
		switch got := s.sh("keep0", "cat /root/kept/text /srv/data/later 2>/dev/null || true"); got {
		case "later\nlater":
			former++
		case "text":
			restored++
			s.wantHoldings(before, s.holdings())
		default:
			s.Errorf("killed (%v) after %s of %s: it has %q", killed, moment, took, got)
		}
	}
	s.Logf("%d times as it was, %d times restored", former, restored)
}

// replacesNode restores one node in place. The node is either restored completely or, if it is then
// not healthy, not at all. The restore is also killed. The other node keeps running all the time.
func (s *site) replacesNode(backup string) {
	s.Helper()
	inits := s.init("keep1")
	mine := func() map[string][]string {
		all := s.holdings()
		delete(all, "shared volume")
		return all
	}
	before := mine()
	spoil := func() {
		s.sh("keep0", "rm /root/kept/text; echo later > /srv/data/later; echo later > /srv/common/later; sync")
	}
	spoil()
	replace := []string{"restore", backup, "--node", "keep0", "--replace", "--yes-replace", s.name}
	s.run(replace[:5]...).want(9, "not confirmed")
	s.run(append(replace, "--dir", s.dir)...).want(2, "--dir")
	s.run("restore", backup, "--node", "nobody", "--replace", "--yes-replace", s.name).want(2, "no node nobody")
	took := s.run(replace...).want(0, "volume common: other nodes use it, too", "1 node as in node keep0 in").took
	s.wantHoldings(before, mine())
	wantBack(s, s.outside())
	s.sh("keep0", "test -e /srv/common/later")
	s.run("plan").want(0, "nothing to do|Nothing to do")

	random := seed(s.T)
	for range 2 {
		spoil()
		s.killed(time.Duration(random.Float64()*float64(took)), replace...)
		if r := s.run("up"); r.status != 0 {
			s.Errorf("up: %s%s", r.out, r.errs)
		} else if _, err := os.Stat(s.state("restoring.json")); err == nil &&
			!strings.Contains(r.errs, "to resume it: orrery snapshot restore keep0-") {
			s.Errorf("up does not say how to resume: %s", r.errs)
		}
		s.run(replace...).want(0)
		s.wantHoldings(before, mine())
	}
	s.settled()

	// It will not start.
	s.sh("keep0", "echo later > /root/kept/text; sed -i s,/usr/bin/sleep,/bin/false, /etc/systemd/system/keep.service; sync")
	sick := filepath.Join(s.TempDir(), "sick")
	s.do("backup", "keep0", sick)
	s.sh("keep0", "echo now > /root/kept/text; sed -i s,/bin/false,/usr/bin/sleep, /etc/systemd/system/keep.service; sync")
	s.run("restore", sick, "--node", "keep0", "--replace", "--yes-replace", s.name).
		want(7, "the previous state was restored")
	if got := s.sh("keep0", "cat /root/kept/text"); got != "now" {
		s.Errorf("undone, it has %q", got)
	}
	s.eventually(func() error { // it was started, and may still be booting
		if r := s.run("exec", "keep0", "--", "systemctl", "is-active", "keep.service"); r.status != 0 {
			return fmt.Errorf("undone, its service is %s", r.out)
		}
		return nil
	})
	if s.init("keep1") != inits {
		s.Error("keep1 was started anew")
	}
	if left := append(glob(s.dirs.Snapshots(s.name)+"/*"), glob(s.dirs.Snapshots(s.name)+"/.*")...); len(left) > 0 {
		s.Errorf("left are %v", left)
	}
}

// TestBackupOfSome: some nodes are backed up and restored, and the others are left alone.
func TestBackupOfSome(t *testing.T) {
	t.Parallel()
	s := newKeeping(t, "it-backup-some", 89)
	file := filepath.Join(t.TempDir(), "file")
	heard := s.hears("backup-done")
	s.do("up")
	s.sh("keep1", "echo mine > /root/mine; echo mine > /srv/data/mine; sync")
	s.run("backup", "keep1", file).want(0, "1 node")
	heard("backup-done done " + file)
	s.do("down", "--volumes", "--yes-volumes", s.name)
	must(t, os.RemoveAll(s.dirs.Site(s.name)))
	must(t, os.RemoveAll(s.outside()))
	s.run("restore", "--yes-paths", s.name, file, "--dir", s.dir).want(0)
	if got := s.sh("keep1", "cat /root/mine /srv/data/mine"); got != "mine\nmine" {
		t.Errorf("%q", got)
	}
	s.do("up")
	s.settled()

	s.populate()
	all := filepath.Join(t.TempDir(), "all")
	s.do("backup", all)
	s.replacesNode(all)
}

// TestBackupKilledWhileFrozen: if a backup is killed while its nodes are frozen, they continue on
// their own.
func TestBackupKilledWhileFrozen(t *testing.T) {
	s := newKeeping(t, "it-backup-frozen", 85)
	repository := filepath.Join(t.TempDir(), "backups") + "/"
	s.do("up")
	frozen := func() bool {
		for _, at := range glob("/sys/fs/cgroup/freezer/orrery/"+s.name+"/10/freezer.state",
			"/sys/fs/cgroup/orrery/"+s.name+"/10/cgroup.events") {
			if text, _ := os.ReadFile(at); bytes.Contains(text, []byte("FROZEN")) ||
				bytes.Contains(text, []byte("FREEZING")) || bytes.Contains(text, []byte("frozen 1")) {
				return true
			}
		}
		return false
	}
	caught := 0
	for range 10 {
		cmd, _, _ := s.command("backup", repository)
		wait, err := begin(cmd)
		must(t, err)
		ended := make(chan error, 1)
		go func() { ended <- wait() }()
		for over := false; !over; {
			if frozen() {
				_ = syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL)
				caught++
				<-ended
				break
			}
			select {
			case <-ended:
				over = true
			default:
			}
		}
		s.eventually(func() error {
			if frozen() {
				return errors.New("it stands still")
			}
			return nil
		})
		must(t, s.goesOn("keep0"))
	}
	t.Logf("%d of 10 backups were killed while the nodes stood still", caught)
	if caught == 0 {
		t.Error("none was killed while the nodes stood still")
	}
	s.do("backup", repository)
	s.settled()
}

// TestBackupOfRelease: the live release is live again after a restore, on a host that never had the
// release, and continues with its data.
func TestBackupOfRelease(t *testing.T) {
	t.Parallel()
	s := newReleased(t, "it-backup-release", 148)
	file, dir := filepath.Join(t.TempDir(), "file"), filepath.Join(t.TempDir(), "dir")
	s.do("up")
	s.do("stage", "--release", "701")
	s.do("switch", "--release", "701")
	s.do("backup", file)
	lines := s.sh("store", "wc -l < /srv/data/ledger")
	s.write("roles/greeter2/greeter.py", greeterSays("edited since it was staged"))
	s.do("down", "--volumes", "--yes-volumes", s.name)
	must(t, os.RemoveAll(s.dirs.Site(s.name)))
	s.run("restore", "--yes-paths", s.name, file, "--dir", dir).want(0)
	s.dir = dir
	s.wantLive(701)
	if says, err := greeted("10.99.148.101:7000"); says != "two" {
		t.Errorf("the greeter says %q (%v)", says, err)
	}
	s.sh("store", `awk 'NR != $1 { print "line", NR, "is", $1; exit 1 }' /srv/data/ledger`)
	t.Logf("%s lines when it was backed up, %s now", lines, s.sh("store", "wc -l < /srv/data/ledger"))
}
