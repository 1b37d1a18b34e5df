package image

import (
	"context"
	"errors"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"orrery/internal/host"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/distro"
	"orrery/internal/site/spec"
	"orrery/internal/tree"
)

// archives have the output of apt-cache in an imaginary scratch.
type archives map[string]string

func (a archives) Run(_ context.Context, c host.Command) error {
	said := ""
	switch {
	case slices.Contains(c.Args, "/var/lib/dpkg/status"):
		said = a["status"]
	default:
		for _, name := range c.Args[slices.Index(c.Args, "show")+2:] {
			said += a[name]
		}
	}
	_, err := io.WriteString(c.Stdout, said)
	return err
}

func (archives) Put(context.Context, ...host.File) error                { return nil }
func (archives) Dial(context.Context, string, string) (net.Conn, error) { return nil, errors.New("no") }

// aDebian has the dependencies of Debian's kernel packages.
var aDebian = archives{
	"status":                "Package: libc6\nStatus: install ok installed\nProvides: libc6-virtual (= 1)\n\nPackage: gone\nStatus: deinstall ok config-files\n\n",
	"linux-image-cloud":     "Package: linux-image-cloud\nVersion: 6.1\nDepends: linux-image-6.1-cloud (= 6.1)\n\n",
	"linux-image-6.1-cloud": "Package: linux-image-6.1-cloud\nVersion: 6.1\nDepends: kmod, linux-base (>= 4.3~), initramfs-tools | linux-initramfs-tool, linux-modules-6.1 (= 6.1)\n\n",
	"linux-modules-6.1":     "Package: linux-modules-6.1\nVersion: 6.1\nDepends: wireless-regdb\n\n",
	"kmod":                  "Package: kmod\nVersion: 1:30\nArchitecture: amd64\nPre-Depends: libc6-virtual:any\nDepends: libc6 (>= 2.34), gone, libkmod2 (= 30)\n\n",
	"gone":                  "Package: gone\nVersion: 2\n\n",
	"libkmod2":              "Package: libkmod2\nVersion: 30\nDepends: libc6, kmod\n\n",
}

// TestNeededByKernel: of a kernel's dependencies, only its own parts are unpacked. The program that
// loads modules comes with all its dependencies.
func TestNeededByKernel(t *testing.T) {
	i := &installer{Packages: distro.Debian.Packages, in: aDebian, log: io.Discard, program: []string{"apt-get", "-qq"}}
	have, err := i.provided(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	needed, err := i.needed(t.Context(), have, []string{"linux-image-cloud", "kmod"})
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, p := range needed {
		names = append(names, p["package"])
	}
	slices.Sort(names)
	if want := "gone kmod libkmod2 linux-image-6.1-cloud linux-image-cloud linux-modules-6.1"; strings.Join(names,
		" ") != want {
		t.Errorf("%s are needed, not %s", names, want)
	}
	if got := i.Packages.File(needed[1]); got != "kmod_1%3a30_amd64.deb" {
		t.Errorf("the file %s", got)
	}
}

// TestNoKernel: archives without a kernel are a clear problem.
func TestNoKernel(t *testing.T) {
	i := &installer{Packages: distro.Debian.Packages, in: aDebian, log: io.Discard, program: []string{"apt-get", "-qq"}}
	_, err := i.needed(t.Context(), nil, []string{"linux-image-none"})
	l := spec.KernelLayer(site.Mirror{}, spec.Base(site.Mirror{}, site.Image{Name: "debian", Suite: "bookworm"}))
	err = noKernel(distro.Debian, l, err)
	if problem.ExitCode(err) != int(problem.Unable) || !strings.Contains(err.Error(), "linux-image-none") ||
		!strings.Contains(err.Error(), "image debian") {
		t.Error(err)
	}
}

// TestKernelLayer unpacks the kernel of Debian 12 and inspects the layer.
func TestKernelLayer(t *testing.T) {
	s := realState(t)
	base := realBase(t, s)
	l := spec.KernelLayer(site.Mirror{}, base)
	s.drop(l.Digest)
	t.Cleanup(func() { s.drop(l.Digest) })
	var log strings.Builder
	err := s.BuildLayer(t.Context(), l, site.Mirror{}, func(ctx context.Context, in host.Runner) error {
		return s.Cache.FillKernel(ctx, in, l, &log)
	}, sayTo(t))
	if err != nil {
		t.Fatalf("%v\n%s", err, log.String())
	}
	r, err := s.Record(l.Digest)
	if err != nil {
		t.Fatal(err)
	}
	under, err := s.Record(base.Digest)
	if err != nil {
		t.Fatal(err)
	}
	more := slices.DeleteFunc(slices.Clone(r.Packages), func(p string) bool { return slices.Contains(under.Packages, p) })
	if len(r.Packages) != len(under.Packages)+len(more) ||
		!slices.ContainsFunc(more, func(p string) bool { return strings.HasPrefix(p, l.Kernel+"=") }) {
		t.Errorf("packages %v", more)
	}
	for _, p := range more {
		if name, _, _ := strings.Cut(p, "="); !distro.Debian.Packages.OfKernel(name) &&
			!slices.Contains([]string{"kmod", "libkmod2", "mount"}, name) {
			t.Errorf("%s came along", p)
		}
	}
	in, err := tree.Open(s.Tree(l.Digest))
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	for at, want := range map[string]bool{"boot": true, "usr/bin/kmod": true, "usr/sbin/modprobe": true,
		"var/lib/dpkg/status": false, "usr/sbin/policy-rc.d": false, "lib": false, "var/cache/apt/archives/lock": false} {
		if _, err := in.Lstat(at); (err == nil) != want {
			t.Errorf("%s: %v", at, err)
		}
	}
	if found, _ := filepath.Glob(filepath.Join(s.Tree(l.Digest), "usr/lib/modules/*/modules.dep.bin")); len(found) != 1 {
		t.Errorf("modules of %v", found)
	}
	if err := s.Verify(t.Context(), l.Digest); err != nil {
		t.Error(err)
	}
	t.Logf("%s, %d files, built in %.1f s, %v", formatSize(uint64(r.Size)), r.Files, r.Seconds, more)
	nothingLeft(t, s)
}
