package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	nothing "github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

func importOf(file, stamp string) *spec.Layer {
	return spec.Base(site.Mirror{}, site.Image{Name: "imported", Import: file, Stamp: stamp})
}

// item is an entry of a tar archive. The other fields determine its type.
type item struct {
	name, text, link, hard string
	dir                    bool
	dev                    int64
	uid                    int
	mode                   int64
	attrs                  map[string]string
}

func tarred(t *testing.T, items ...item) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, it := range items {
		h := &tar.Header{Name: it.name, Mode: it.mode, Uid: it.uid, Gid: it.uid, ModTime: time.Unix(1e9, 0),
			Format: tar.FormatPAX, Typeflag: tar.TypeReg, Size: int64(len(it.text))}
		if h.Mode == 0 {
			h.Mode = 0o644
		}
		switch {
		case it.dir:
			h.Typeflag, h.Mode = tar.TypeDir, max(it.mode, 0o755)
		case it.link != "":
			h.Typeflag, h.Linkname = tar.TypeSymlink, it.link
		case it.hard != "":
			h.Typeflag, h.Linkname = tar.TypeLink, it.hard
		case it.dev != 0:
			h.Typeflag, h.Devmajor, h.Devminor = tar.TypeChar, 1, it.dev
		}
		for key, value := range it.attrs {
			if h.PAXRecords == nil {
				h.PAXRecords = map[string]string{}
			}
			h.PAXRecords["SCHILY.xattr."+key] = value
		}
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(w, it.text); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// small is the smallest tree that passes for a system.
var small = []item{
	{name: "./", dir: true}, {name: "./etc/", dir: true}, {name: "./etc/os-release", text: "ID=small\n"},
	{name: "./etc/ssh/ssh_host_rsa_key", text: "k"},
	{name: "./usr/lib/systemd/systemd", text: "#!", mode: 0o755}, {name: "./usr/sbin/sshd", text: "#!", mode: 0o4755},
	{name: "./lib", link: "usr/lib"}, {name: "./var/run", link: "/run"}, {name: "./var/run/in-run", text: "x"},
	{name: "./etc/hard", hard: "./etc/os-release"},
	{name: "./home/u/f", text: "u", uid: boolInt(os.Geteuid() == 0) * 1000},
}

func boolInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

func writeFile(t *testing.T, name string, content []byte) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(file, content, 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}

func compress(t *testing.T, how string, plain []byte) []byte {
	t.Helper()
	if how == "gz" {
		var b bytes.Buffer
		z := gzip.NewWriter(&b)
		z.Write(plain)
		z.Close()
		return b.Bytes()
	}
	program := map[string]string{"xz": "xz", "zst": "zstd"}[how]
	if program == "" {
		return plain
	}
	cmd := exec.Command(program, "-c")
	cmd.Stdin = bytes.NewReader(plain)
	out, err := cmd.Output()
	if err != nil {
		t.Skip("needs " + program)
	}
	return out
}

func TestImportTarball(t *testing.T) {
	for _, how := range []string{"tar", "gz", "xz", "zst"} {
		t.Run(how, func(t *testing.T) {
			items := append([]item{{name: "./dev/", dir: true}, {name: "./dev/null", dev: 3, mode: 0o666},
				{name: "./dev/hard", hard: "./dev/null"},
				{name: "./dev/shm/left", text: "x"}}, small...)
			if os.Geteuid() == 0 {
				items = append(items,
					item{name: "./usr/bin/ping", text: "p", mode: 0o755, attrs: map[string]string{
						"security.capability":      "\x01\x00\x00\x02\x00\x20\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00\x00",
						"trusted.overlay.redirect": "/etc"}})
			}
			file := writeFile(t, "root.any", compress(t, how, tarred(t, items...)))
			s := Open(t.TempDir())
			l := importOf(file, "1")
			if err := s.BuildBase(t.Context(), l, site.Mirror{}, sayTo(t)); err != nil {
				t.Fatal(err)
			}
			tree := s.Tree(l.Digest)
			checkSmall(t, tree)
			if inside, err := os.ReadDir(tree + "/dev"); err != nil || len(inside) > 0 {
				t.Errorf("/dev has %v: %v", inside, err)
			}
			if os.Geteuid() != 0 {
				return
			}
			var st syscall.Stat_t
			if syscall.Lstat(tree+"/home/u/f", &st); st.Uid != 1000 {
				t.Errorf("owner %d", st.Uid)
			}
			if syscall.Lstat(tree+"/usr/sbin/sshd", &st); st.Mode&0o7777 != 0o4755 {
				t.Errorf("mode %o", st.Mode)
			}
			if attrs, err := attributesOf(tree + "/usr/bin/ping"); err != nil || len(attrs) != 1 || attrs[capability] == nil {
				t.Errorf("attributes %v, %v", attrs, err)
			}
		})
	}
}

// TestImportRefusesDevices: a device node in an imported tree would be a device of the host.
func TestImportRefusesDevices(t *testing.T) {
	for name, items := range map[string][]item{
		"beside /dev":    {{name: "./srv/mem", dev: 1}},
		"through a link": {{name: "./dev", link: "srv"}, {name: "./srv/", dir: true}, {name: "./dev/mem", dev: 1}},
	} {
		s := Open(t.TempDir())
		file := writeFile(t, "root.tar", tarred(t, append(items, small...)...))
		err := s.BuildBase(t.Context(), importOf(file, name), site.Mirror{}, sayTo(t))
		if err == nil || !strings.Contains(err.Error(), "is a device") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func checkSmall(t *testing.T, tree string) {
	t.Helper()
	var a, b syscall.Stat_t
	syscall.Lstat(tree+"/etc/hard", &a)
	syscall.Lstat(tree+"/etc/os-release", &b)
	if a.Ino != b.Ino || a.Ino == 0 {
		t.Error("the hard link is none")
	}
	if target, _ := os.Readlink(tree + "/etc/hosts"); target != "orrery/hosts" {
		t.Errorf("/etc/hosts points to %q: the tree was not fitted", target)
	}
	if _, err := os.Stat(tree + "/etc/ssh/ssh_host_rsa_key"); err == nil {
		t.Error("a host key came with the image")
	}
	if text, _ := os.ReadFile(tree + "/lib/systemd/systemd"); string(text) != "#!" {
		t.Error("no systemd")
	}
}

func TestExtractorStaysInside(t *testing.T) {
	outside := t.TempDir()
	for name, items := range map[string][]item{
		"dots":          {{name: "../../../../../../../../" + outside + "/a", text: "x"}},
		"absolute":      {{name: outside + "/a", text: "x"}},
		"link":          {{name: "out", link: outside}, {name: "out/a", text: "x"}},
		"relative link": {{name: "d/out", link: "../../../../../../../../../.." + outside}, {name: "d/out/a", text: "x"}},
		"hard link":     {{name: "h", hard: "../../../../../../../../../../etc/passwd"}},
		"link to link":  {{name: "a", link: "b"}, {name: "b", link: "a"}, {name: "a/x", text: "x"}},
	} {
		t.Run(name, func(t *testing.T) {
			err := unpacked(t, writeFile(t, "file.tar", tarred(t, append(slices.Clone(small), items...)...)), 1<<30)
			if left, _ := os.ReadDir(outside); len(left) > 0 {
				t.Errorf("%v was written outside", left)
			}
			if err == nil && name == "hard link" {
				t.Error("a file of the host was linked")
			}
		})
	}
}

func image(t *testing.T, layers ...[]byte) v1.Image {
	t.Helper()
	img := nothing.Image
	for _, text := range layers {
		layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) {
			return io.NopCloser(bytes.NewReader(text)), nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if img, err = mutate.AppendLayers(img, layer); err != nil {
			t.Fatal(err)
		}
	}
	return img
}

// TestImportOCI extracts layers on top of each other, from all formats of images.
func TestImportOCI(t *testing.T) {
	first := tarred(t, append([]item{
		{name: "etc/gone", text: "x"}, {name: "opt/old/a", text: "x"}, {name: "opt/old/b", text: "x"},
		{name: "opt/kind", text: "file"},
	}, small...)...)
	second := tarred(t, item{name: "etc/.wh.gone"}, item{name: "opt/old/new", text: "y"},
		item{name: "opt/old/.wh..wh..opq"},
		item{name: "opt/kind/inner", text: "dir"}, item{name: "lib/through-link", text: "z"})
	img := image(t, first, second)
	dir := t.TempDir()
	path, err := layout.Write(dir, nothing.Index)
	if err != nil {
		t.Fatal(err)
	}
	if err := path.AppendImage(img, layout.WithPlatform(v1.Platform{OS: "linux", Architecture: "amd64"})); err != nil {
		t.Fatal(err)
	}
	if err := path.AppendImage(image(t, first),
		layout.WithPlatform(v1.Platform{OS: "plan9", Architecture: "mips"})); err != nil {
		t.Fatal(err)
	}
	oci := filepath.Join(t.TempDir(), "image.tar")
	if out, err := exec.Command("tar", "-C", dir, "-cf", oci, ".").CombinedOutput(); err != nil {
		t.Fatal(string(out))
	}
	docker := filepath.Join(t.TempDir(), "docker.tar")
	if err := tarball.WriteToFile(docker, nil, img); err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]string{"layout": dir, "archive": oci, "docker": docker} {
		t.Run(name, func(t *testing.T) {
			s := Open(t.TempDir())
			l := importOf(file, "1")
			if err := s.BuildBase(t.Context(), l, site.Mirror{}, sayTo(t)); err != nil {
				t.Fatal(err)
			}
			tree := s.Tree(l.Digest)
			checkSmall(t, tree)
			for path, want := range map[string]bool{
				"etc/gone": false, "opt/old/a": false, "opt/old/b": false, "opt/old/new": true, "opt/kind/inner": true,
				"usr/lib/through-link": true,
			} {
				if _, err := os.Lstat(filepath.Join(tree, path)); (err == nil) != want {
					t.Errorf("%s: %v", path, err)
				}
			}
			if marks, _ := filepath.Glob(tree + "/*/.wh.*"); len(marks) > 0 {
				t.Errorf("marks are left: %v", marks)
			}
		})
	}
}

// TestImportMistakes: mistakes are problems that name the remedy.
func TestImportMistakes(t *testing.T) {
	good := tarred(t, small...)
	for name, test := range map[string]struct {
		content []byte
		want    string
	}{
		"missing": {nil, "it cannot be read"},
		"text": {[]byte("this is no archive, but long enough to be taken for the header of one, were it not for the check sum" + strings.Repeat(".",
			600)), "could not be unpacked"},
		"cut short": {compress(t, "gz", good)[:200], "could not be unpacked"},
		"no system": {tarred(t, item{name: "a", text: "x"}), "/etc is missing"},
		"no init":   {tarred(t, item{name: "etc/x", text: "x"}), "no systemd"},
		"idmapped":  {tarred(t, append([]item{{name: "etc/y", uid: 100000}}, small...)...), "belongs to 100000"},
	} {
		t.Run(name, func(t *testing.T) {
			file := "/nonexistent.tar"
			if test.content != nil {
				file = writeFile(t, "f", test.content)
			}
			s := Open(t.TempDir())
			l := importOf(file, "1")
			err := s.BuildBase(context.Background(), l, site.Mirror{}, sayTo(t))
			var p *problem.Problem
			if !errors.As(err, &p) || !strings.Contains(err.Error(), test.want) || p.Cure == "" {
				t.Errorf("got %v", err)
			}
			t.Log(err)
			if whole, _ := s.Layers(); len(whole) > 0 {
				t.Error("it is in the store")
			}
			if left, _ := os.ReadDir(s.stagings); len(left) > 0 {
				t.Errorf("%v is left", left)
			}
		})
	}
}
