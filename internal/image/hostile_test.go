package image

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"orrery/internal/image/archive"
	"orrery/internal/problem"
	"orrery/internal/site/distro"
	"orrery/test/need"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// unpacked unpacks an untrusted file, with free bytes left on the disk. It checks the memory and
// time used, and that nothing beside the tree changes.
func unpacked(t *testing.T, file string, free int64) error {
	t.Helper()
	return unpackedIn(t, 64<<20, file, free)
}

// unpackedIn is unpacked with a limit for all memory allocated, including what was freed again.
func unpackedIn(t *testing.T, most uint64, file string, free int64) error {
	t.Helper()
	top := t.TempDir()
	scratch, beside := filepath.Join(top, "scratch"), filepath.Join(top, "beside")
	must(t, errors.Join(os.Mkdir(scratch, 0o700), os.Mkdir(beside, 0o700),
		os.WriteFile(filepath.Join(beside, "mine"), []byte("of the host"), 0o600)))
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	begun := time.Now()
	err := archive.Unpack(t.Context(), file, filepath.Join(scratch, "tree"), scratch, free)
	runtime.ReadMemStats(&after)
	if all := after.TotalAlloc - before.TotalAlloc; all > most {
		t.Errorf("it took %d MiB of memory", all>>20)
	}
	if took := time.Since(begun); took > 30*time.Second {
		t.Errorf("it took %s", took)
	}
	text, read := os.ReadFile(filepath.Join(beside, "mine"))
	if names, _ := os.ReadDir(beside); read != nil || string(text) != "of the host" || len(names) != 1 {
		t.Errorf("beside there are %v, and mine holds %q", names, text)
	}
	return err
}

// gzipped returns the compressed output of write.
func gzipped(t *testing.T, write func(io.Writer)) []byte {
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	write(z)
	must(t, z.Close())
	return b.Bytes()
}

// TestImportBombs: an archive of some kilobytes that expands to more than the disk holds ends with
// a problem that says so.
func TestImportBombs(t *testing.T) {
	const free = 64 << 20
	zeros := make([]byte, 1<<20)
	file := func(name string, size int64) []byte {
		var b bytes.Buffer
		must(t, tar.NewWriter(&b).WriteHeader(&tar.Header{Name: name, Size: size, Mode: 0o644, Typeflag: tar.TypeReg}))
		return b.Bytes()
	}
	for name, content := range map[string][]byte{
		"a file of 100 MiB": gzipped(t, func(w io.Writer) {
			_, _ = w.Write(file("zero", 100<<20))
			for range 100 {
				_, _ = w.Write(zeros)
			}
		}),
		"holes of 32 TiB":      sparse(t, 32<<40),
		"a deep path":          tarred(t, item{name: strings.Repeat("d/", 100_000) + "f", text: "x"}),
		"a long name":          tarred(t, item{name: strings.Repeat("d", 300_000), text: "x"}),
		"names without a file": gzipped(t, func(w io.Writer) { longNames(w, 500) }),
		"an index of 60 MiB": gzipped(t, func(w io.Writer) {
			_, _ = w.Write(file("index.json", 60<<20))
			for range 100 {
				_, _ = w.Write(zeros)
			}
		}),
	} {
		t.Run(name, func(t *testing.T) {
			most := uint64(64 << 20)
			if name == "names without a file" {
				most = 2 << 30 // one after another: 500 times 1 MiB is read and freed
			}
			err := unpackedIn(t, most, writeFile(t, "f", content), free)
			var p *problem.Problem
			if !errors.As(err, &p) || len(err.Error()) > 1000 {
				t.Errorf("%.2000v", err)
			}
			t.Log(err)
		})
	}
}

// TestImportHole: a file that consists of one hole takes neither time nor disk space, whatever its
// size.
func TestImportHole(t *testing.T) {
	if err := unpacked(t, writeFile(t, "f", sparse(t, 8<<40)), 1<<20); err != nil {
		t.Error(err)
	}
}

// TestDecompressors: the program that decompresses an untrusted archive runs as a user of its own.
func TestDecompressors(t *testing.T) {
	need.Integration(t)
	programs, err := os.MkdirTemp("", "orrery-decompressors-")
	must(t, err)
	t.Cleanup(func() { must(t, os.RemoveAll(programs)) })
	must(t, os.Chmod(programs, 0o755))
	t.Setenv("PATH", programs+":"+os.Getenv("PATH"))
	for program, magic := range map[string]string{"xz": "\xfd7zXZ\x00", "zstd": "\x28\xb5\x2f\xfd"} {
		must(t, os.WriteFile(filepath.Join(programs, program), []byte("#!/bin/sh\necho it is $(id -u) >&2\nexit 1\n"), 0o755))
		if err := unpacked(t, writeFile(t, "archive", []byte(magic)), 1<<20); err == nil ||
			!strings.Contains(err.Error(), "it is 1899999999") {
			t.Errorf("%s: %v", program, err)
		}
	}
}

// sparse returns an archive with a file that consists of one hole (PAX 1.0).
func sparse(t *testing.T, size int64) []byte {
	var b bytes.Buffer
	record := func(key, value string) string {
		line := fmt.Sprintf(" %s=%s\n", key, value)
		n := len(line) + 1
		for len(fmt.Sprint(n))+len(line) != n {
			n++
		}
		return fmt.Sprint(n) + line
	}
	pax := record("GNU.sparse.major", "1") + record("GNU.sparse.minor", "0") + record("GNU.sparse.name", "hole") +
		record("GNU.sparse.realsize", fmt.Sprint(size))
	w := tar.NewWriter(&b)
	must(t, w.WriteHeader(&tar.Header{Name: "x", Typeflag: tar.TypeReg, Size: 512, Mode: 0o644}))
	plain := b.Bytes()
	head := append([]byte(nil), plain...)
	copy(head, append([]byte("PaxHeaders/x"), make([]byte, 100-12)...))
	head[156] = tar.TypeXHeader
	copy(head[124:136], fmt.Sprintf("%011o\x00", len(pax)))
	check := func(h []byte) {
		copy(h[148:156], "        ")
		n := 0
		for _, c := range h[:512] {
			n += int(c)
		}
		copy(h[148:156], fmt.Sprintf("%06o\x00 ", n))
	}
	check(head)
	content := make([]byte, 512)
	copy(content, fmt.Sprintf("1\n%d\n0\n", size))
	body := append([]byte(pax), make([]byte, (512-len(pax)%512)%512)...)
	return bytes.Join([][]byte{head, body, plain, content, make([]byte, 1024)}, nil)
}

// longNames writes headers with long names for the next file, and no file.
func longNames(w io.Writer, n int) {
	head := make([]byte, 512)
	copy(head, "././@LongLink")
	copy(head[100:], "0000644\x000000000\x000000000\x00")
	size := 1<<20 - 1
	copy(head[124:], fmt.Sprintf("%011o\x0000000000000\x00", size))
	head[156] = 'L'
	copy(head[257:], "ustar  \x00")
	copy(head[148:156], "        ")
	sum := 0
	for _, c := range head {
		sum += int(c)
	}
	copy(head[148:156], fmt.Sprintf("%06o\x00 ", sum))
	name := bytes.Repeat([]byte("n"), 1<<20)
	for range n {
		_, _ = w.Write(head)
		_, _ = w.Write(name)
	}
}

// layoutOf creates an OCI layout directory of an image with one layer.
func layoutOf(t *testing.T, layer []byte) (dir string, blob func(text []byte) string) {
	t.Helper()
	dir = t.TempDir()
	must(t, os.MkdirAll(filepath.Join(dir, "blobs/sha256"), 0o755))
	blob = func(text []byte) string {
		sum := sha256.Sum256(text)
		name := hex.EncodeToString(sum[:])
		must(t, os.WriteFile(filepath.Join(dir, "blobs/sha256", name), text, 0o644))
		return name
	}
	manifest := fmt.Sprintf(`{"schemaVersion":2,"config":{"digest":"sha256:%064d"},"layers":[{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":"sha256:%s","size":%d}]}`,
		0, blob(layer), len(layer))
	index := fmt.Sprintf(`{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:%s","size":%d}]}`,
		blob([]byte(manifest)), len(manifest))
	must(t, os.WriteFile(filepath.Join(dir, "index.json"), []byte(index), 0o644))
	return dir, blob
}

// TestImagesOfStrangers: blobs are compared with their digests. Links and named pipes in the place
// of a blob are not followed and do not block.
//
// Promise (Files of strangers): An image is compared with its digests, and its import takes at most
// the free disk. With image.TestImportBombs, image.FuzzImport.
func TestImagesOfStrangers(t *testing.T) {
	layer := tarred(t, small...)
	sum := sha256.Sum256(layer)
	for name, spoil := range map[string]func(dir, blob string){
		"another content": func(_, blob string) {
			must(t, os.WriteFile(blob, tarred(t, append(small, item{name: "evil", text: "x"})...), 0o644))
		},
		"more behind it": func(_, blob string) { must(t, os.WriteFile(blob, append(bytes.Clone(layer), 0), 0o644)) },
		"a pipe":         func(_, blob string) { must(t, errors.Join(os.Remove(blob), unix.Mkfifo(blob, 0o600))) },
		"endless":        func(_, blob string) { must(t, errors.Join(os.Remove(blob), os.Symlink("/dev/zero", blob))) },
		"of the host": func(_, blob string) {
			other := filepath.Join(t.TempDir(), "layer")
			must(t, errors.Join(os.WriteFile(other, layer, 0o600), os.Remove(blob), os.Symlink(other, blob)))
		},
		"an endless index": func(dir, _ string) {
			must(t, errors.Join(os.Remove(filepath.Join(dir, "index.json")),
				os.Symlink("/dev/zero", filepath.Join(dir, "index.json"))))
		},
		"another manifest": func(dir, _ string) {
			text, _ := os.ReadFile(filepath.Join(dir, "index.json"))
			i := bytes.Index(text, []byte("sha256:")) + 7
			file := filepath.Join(dir, "blobs/sha256", string(text[i:i+64]))
			manifest, _ := os.ReadFile(file)
			must(t, os.WriteFile(file, append(manifest, ' '), 0o644))
		},
		"a digest that leads out": func(dir, _ string) {
			text, _ := os.ReadFile(filepath.Join(dir, "index.json"))
			i := bytes.Index(text, []byte("sha256:")) + 7
			must(t, os.WriteFile(filepath.Join(dir, "index.json"),
				bytes.Replace(text, text[i:i+64], []byte("../../../../etc/passwd"), 1), 0o644))
		},
	} {
		t.Run(name, func(t *testing.T) {
			dir, _ := layoutOf(t, layer)
			if err := unpacked(t, dir, 1<<30); err != nil {
				t.Fatal(err)
			}
			spoil(dir, filepath.Join(dir, "blobs/sha256", hex.EncodeToString(sum[:])))
			done := make(chan error, 1)
			go func() { done <- unpacked(t, dir, 1<<30) }()
			select {
			case err := <-done:
				if err == nil {
					t.Error("it was imported")
				}
				t.Log(err)
			case <-time.After(20 * time.Second):
				t.Fatal("it waits")
			}
		})
	}
}

// TestIndexOfIndexes: an index that names itself, or others that name it, many times.
func TestIndexOfIndexes(t *testing.T) {
	dir, blob := layoutOf(t, tarred(t, small...))
	text := []byte(`{"schemaVersion":2,"manifests":[]}`)
	for range 4 {
		one := fmt.Sprintf(`{"mediaType":"application/vnd.oci.image.index.v1+json","digest":"sha256:%s","size":1}`,
			blob(text))
		text = []byte(`{"schemaVersion":2,"manifests":[` + one + strings.Repeat(","+one, 300) + `]}`)
	}
	must(t, os.WriteFile(filepath.Join(dir, "index.json"), text, 0o644))
	if err := unpacked(t, dir, 1<<30); err == nil {
		t.Error("it was imported")
	}
}

// FuzzImport: unpacking any bytes does not panic.
func FuzzImport(f *testing.F) {
	t := &testing.T{} // never used: building the seed archives cannot fail
	f.Add(tarred(t, small...))
	f.Add(tarred(t, item{name: "index.json",
		text: `{"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:` +
			strings.Repeat("0", 64) + `"}]}`}))
	f.Add(tarred(t, item{name: "manifest.json", text: `[{"Config":"c","Layers":["l","../x"]}]`},
		item{name: "c", text: `{"rootfs":{"diff_ids":["sha256:` + strings.Repeat("0", 64) + `","sha256:` +
			strings.Repeat("1", 64) + `"]}}`},
		item{name: "l", text: "x"}))
	f.Add(tarred(t, item{name: "out", link: "../../beside"}, item{name: "out/mine", text: "x"},
		item{name: "h", hard: "out/mine"}, item{name: "a/.wh..wh..opq"}))
	f.Add(sparse(t, 8<<40))
	var z bytes.Buffer
	w := gzip.NewWriter(&z)
	_, _ = w.Write(tarred(t, small...))
	must(f, w.Close())
	f.Add(z.Bytes())
	f.Fuzz(func(t *testing.T, content []byte) {
		err := unpacked(t, writeFile(t, "f", content), 16<<20)
		if err != nil && len(err.Error()) > 20_000 {
			t.Errorf("a message of %d bytes", len(err.Error()))
		}
	})
}

// TestTreesOfStrangers: reading from an image, or from what packages wrote, does not block on a
// pipe, terminates, and stays in the tree.
func TestTreesOfStrangers(t *testing.T) {
	dir, outside := t.TempDir(), t.TempDir()
	must(t, os.WriteFile(filepath.Join(outside, "mine.log"),
		[]byte("Package: of-the-host\nStatus: install ok installed\nVersion: 1\n\n"), 0o600))
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, name := range []string{"etc/apt/sources.list.d", "var/lib/dpkg",
		"opt/orrery/venv/lib/python3.11/site-packages/x.dist-info", "usr/lib", "var"} {
		must(t, os.MkdirAll(at(name), 0o755))
	}
	must(t, os.Symlink("/dev/zero", at("etc/apt/sources.list")))
	must(t, unix.Mkfifo(at("etc/apt/sources.list.d/x.list"), 0o600))
	must(t, os.Symlink("/dev/zero", at("etc/os-release")))
	must(t, unix.Mkfifo(at("usr/lib/os-release"), 0o600))
	must(t, os.Symlink(filepath.Join(outside, "mine.log"), at("var/lib/dpkg/status")))
	must(t, os.Symlink("/dev/zero", at("opt/orrery/venv/lib/python3.11/site-packages/x.dist-info/METADATA")))
	must(t, unix.Mkfifo(at("tmp"), 0o600))
	must(t, os.Symlink(outside, at("run")))
	must(t, os.Symlink(outside, at("var/log")))
	done := make(chan struct{})
	go func() {
		defer close(done)
		if all, err := distro.HostSources(dir); err == nil {
			t.Errorf("its sources are %v", all)
		}
		if all := distro.OsRelease(dir); len(all) > 0 {
			t.Errorf("it says that it is %v", all)
		}
		if all, err := read(dir, distro.Debian.Packages.Installed); err != nil || len(all) > 0 {
			t.Errorf("its packages are %v: %v", all, err)
		}
		if all, err := read(dir, pythonPackages); err != nil || len(all) > 0 {
			t.Errorf("its Python packages are %v: %v", all, err)
		}
		if err := removeVolatile(distro.Debian, dir); err != nil {
			t.Errorf("it is not tidied: %v", err)
		}
	}()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
		t.Fatal("it waits")
	}
	if names, _ := os.ReadDir(outside); len(names) != 1 {
		t.Errorf("outside there are %v", names)
	}
}

// TestPortable: the portable record of a layer with devices has none.
func TestPortable(t *testing.T) {
	s := Open(t.TempDir())
	at := filepath.Join(s.Dir, "abc")
	must(t, os.MkdirAll(at, 0o700))
	lines := manifest{`"/" 040755 0:0`, `"/dev dev 1:3" 100644 0:0 00`, `"/dev/null" 020666 0:0 dev 1:3`,
		`"/disk" 060660 0:0 dev 0:0`, `"/gone" 020000 0:0 dev 0:0`}
	must(t, errors.Join(lines.write(filepath.Join(at, "manifest.gz")),
		(&Record{Digest: "abc", Content: lines.digest()}).write(filepath.Join(at, "layer.json"))))
	r, err := s.PortableRecord("abc")
	must(t, err)
	if want := (manifest{lines[0], lines[1], lines[4]}); r.Content != want.digest() || r.Files != 3 {
		t.Errorf("%d lines are left", r.Files)
	}
}
