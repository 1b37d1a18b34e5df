package image

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"orrery/internal/image/access"
	"orrery/internal/site/distro"
)

// A fakePackage is a package of a fakeArchive.
type fakePackage struct {
	name    string
	control string            // more control fields
	script  string            // postinst
	files   map[string]string // paths in the package, and the files of this host to copy there
}

// toolbox returns a package with everything that dpkg and scripts need, copied from this host. It
// stands for all packages of a base.
func toolbox(t *testing.T) fakePackage {
	t.Helper()
	p := fakePackage{
		name:    "toolbox",
		control: "Essential: yes\nPriority: required\nProvides: " + strings.Join(distro.Debian.Base, ", ") + "\n",
		files:   map[string]string{},
	}
	add := func(path string) {
		dir, err := filepath.EvalSymlinks(filepath.Dir(path)) // /bin may be /usr/bin
		must(t, err)
		p.files[filepath.Join(dir, filepath.Base(path))] = path
	}
	for _, name := range []string{
		"sh", "cat", "true", "rm", "diff", "tar", "dpkg", "dpkg-deb", "dpkg-split", "dpkg-query", "ldconfig",
		"start-stop-daemon", "env",
	} {
		path, err := exec.LookPath(name)
		if err != nil {
			path = "/sbin/" + name
		}
		add(path)
		libraries, _ := exec.Command("ldd", path).Output() // fails for a script
		for _, word := range strings.Fields(string(libraries)) {
			if strings.HasPrefix(word, "/") {
				add(word)
			}
		}
	}
	return p
}

// build creates the package's file and returns its paragraph of an index.
func (p fakePackage) build(t *testing.T, archive, arch string) string {
	t.Helper()
	version := fmt.Sprint(time.Now().UnixNano()) // new in each run, because packages are kept for later builds
	top := t.TempDir()
	must(t, os.Chmod(top, 0o755))
	for _, link := range []string{"bin", "sbin", "lib", "lib64"} {
		if to, err := os.Readlink("/" + link); err == nil && p.name == "toolbox" {
			must(t, os.Symlink(to, filepath.Join(top, link)))
			must(t, os.MkdirAll(filepath.Join(top, to), 0o755))
		}
	}
	if p.name == "toolbox" {
		for _, d := range []string{"proc", "sys", "dev", "run", "tmp"} {
			must(t, os.Mkdir(filepath.Join(top, d), 0o755))
		}
	}
	for to, from := range p.files {
		text, err := os.ReadFile(from)
		must(t, err)
		must(t, os.MkdirAll(filepath.Join(top, filepath.Dir(to)), 0o755))
		must(t, os.WriteFile(filepath.Join(top, to), text, 0o755))
	}
	control := fmt.Sprintf("Package: %s\nVersion: %s\nArchitecture: %s\nMaintainer: X <x@example.org>\n%sDescription: a test\n",
		p.name, version, arch, p.control)
	must(t, os.MkdirAll(filepath.Join(top, "DEBIAN"), 0o755))
	must(t, os.WriteFile(filepath.Join(top, "DEBIAN/control"), []byte(control), 0o644))
	if p.script != "" {
		must(t, os.WriteFile(filepath.Join(top, "DEBIAN/postinst"), []byte("#!/bin/sh\n"+p.script), 0o755))
	}
	file := filepath.Join("pool", p.name+"_"+version+"_"+arch+".deb")
	run(t, "dpkg-deb", "-Znone", "--root-owner-group", "--build", top, filepath.Join(archive, file))
	text, err := os.ReadFile(filepath.Join(archive, file))
	must(t, err)
	return fmt.Sprintf("%sFilename: %s\nSize: %d\nSHA256: %x\n\n", control, file, len(text), sha256.Sum256(text))
}

// fakeArchive creates a signed package archive in a directory of this host. It is sufficient to
// build a base of a suite.
func fakeArchive(t *testing.T, suite string, packages ...fakePackage) (dir string) {
	t.Helper()
	dir = t.TempDir()
	must(t, os.Mkdir(filepath.Join(dir, "pool"), 0o755))
	arch := strings.TrimSpace(run(t, "dpkg", "--print-architecture"))
	var index strings.Builder
	for _, p := range packages {
		index.WriteString(p.build(t, dir, arch))
	}
	keys, err := os.MkdirTemp("", "orrery-keys-") // a short name, because sockets are created there
	must(t, err)
	gpg := func(args ...string) string {
		return run(t, "gpg", append([]string{"--homedir", keys, "--batch", "--quiet", "--passphrase", "", "--pinentry-mode",
			"loopback"}, args...)...)
	}
	t.Cleanup(func() { run(t, "gpgconf", "--homedir", keys, "--kill", "all"); must(t, os.RemoveAll(keys)) })
	gpg("--quick-generate-key", "test", "ed25519", "sign", "never")
	must(t, os.WriteFile(filepath.Join(dir, access.MirrorKeyFile), []byte(gpg("--armor", "--export")), 0o644))
	sum := sha256.Sum256([]byte(index.String()))
	list := fmt.Sprintf("main/binary-%s/Packages", arch)
	for _, pocket := range []string{suite, suite + "-updates", suite + "-security"} {
		at := filepath.Join(dir, "dists", pocket)
		must(t, os.MkdirAll(filepath.Join(at, filepath.Dir(list)), 0o755))
		must(t, os.WriteFile(filepath.Join(at, list), []byte(index.String()), 0o644))
		release := fmt.Sprintf("Suite: %[1]s\nCodename: %[1]s\nDate: Thu, 01 Jan 2026 00:00:00 UTC\nComponents: main\nArchitectures: %[2]s\nSHA256:\n %[3]s %[4]d %[5]s\n",
			pocket, arch, hex.EncodeToString(sum[:]), index.Len(), list)
		must(t, os.WriteFile(filepath.Join(at, "Release"), []byte(release), 0o644))
		gpg("--output", filepath.Join(at, "InRelease"), "--clear-sign", filepath.Join(at, "Release"))
	}
	return dir
}

func run(t *testing.T, program string, args ...string) string {
	t.Helper()
	out, err := exec.Command(program, args...).Output()
	if err != nil {
		var said []byte
		if exit, ok := err.(*exec.ExitError); ok {
			said = exit.Stderr
		}
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, said)
	}
	return string(out)
}
