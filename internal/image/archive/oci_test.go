package archive

import (
	"archive/tar"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"orrery/internal/problem"
)

// layerOf returns a layer with entries as ls -F shows them: "dir/", "link@target", "other=name of a
// hard link", "file". The content of a file is the number of its layer, so that a test can tell
// where it comes from.
func layerOf(t *testing.T, number int, entries ...string) []byte {
	t.Helper()
	var b bytes.Buffer
	w := tar.NewWriter(&b)
	for _, entry := range entries {
		h := &tar.Header{Mode: 0o644, Uid: os.Getuid(), Gid: os.Getgid(), ModTime: time.Unix(int64(number)*1e6, 0),
			Typeflag: tar.TypeReg}
		name, target, link := strings.Cut(entry, "@")
		other, same, hard := strings.Cut(entry, "=")
		text := fmt.Sprint(number)
		switch {
		case link:
			h.Name, h.Typeflag, h.Linkname, text = name, tar.TypeSymlink, target, ""
		case hard:
			h.Name, h.Typeflag, h.Linkname, text = other, tar.TypeLink, same, ""
		case strings.HasSuffix(entry, "/"):
			h.Name, h.Typeflag, h.Mode, text = entry, tar.TypeDir, 0o755, ""
		case strings.Contains(entry, whiteoutPrefix):
			h.Name, text = entry, ""
		default:
			h.Name = entry
		}
		h.Size = int64(len(text))
		if err := w.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// layered unpacks an image of such layers.
func layered(t *testing.T, layers ...[]byte) (tree string, err error) {
	t.Helper()
	dir := t.TempDir()
	blobs := filepath.Join(dir, "blobs/sha256")
	if err := os.MkdirAll(blobs, 0o755); err != nil {
		t.Fatal(err)
	}
	blob := func(text []byte) string {
		name := digestOfBytes(text)
		if err := os.WriteFile(filepath.Join(blobs, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
		return name
	}
	var named []string
	for _, layer := range layers {
		named = append(named, fmt.Sprintf(`{"mediaType":"application/vnd.oci.image.layer.v1.tar","digest":"sha256:%s"}`,
			blob(layer)))
	}
	manifest := blob(fmt.Appendf(nil, `{"schemaVersion":2,"config":{"digest":"sha256:%064d"},"layers":[%s]}`, 0,
		strings.Join(named, ",")))
	index := fmt.Sprintf(`{"schemaVersion":2,"manifests":[{"mediaType":"application/vnd.oci.image.manifest.v1+json","digest":"sha256:%s"}]}`,
		manifest)
	if err := os.WriteFile(filepath.Join(dir, "index.json"), []byte(index), 0o644); err != nil {
		t.Fatal(err)
	}
	tree = filepath.Join(t.TempDir(), "tree")
	return tree, Unpack(t.Context(), dir, tree, t.TempDir(), 1<<30)
}

// found describes a path: the number of the layer that a file is from, "dir", "-> target", or "" if
// there is nothing.
func found(at string) string {
	info, err := os.Lstat(at)
	switch {
	case err != nil:
		return ""
	case info.IsDir():
		return "dir"
	case info.Mode()&os.ModeSymlink != 0:
		target, _ := os.Readlink(at)
		return "-> " + target
	}
	text, _ := os.ReadFile(at)
	return string(text)
}

// TestLayers extracts layers that change, hide and replace paths of the layers below, as the OCI
// image specification requires (layer.md, "Whiteouts").
func TestLayers(t *testing.T) {
	for name, test := range map[string]struct {
		layers [][]string
		want   map[string]string
	}{
		"a directory becomes a link": {
			[][]string{{"opt/", "opt/dm/", "opt/dm/x"}, {"opt/dm@/nowhere"}},
			map[string]string{"opt/dm": "-> /nowhere", "opt/dm/x": ""},
		},
		"the directory above becomes a link": {
			[][]string{{"opt/", "opt/a/", "opt/a/b/", "srv/", "srv/b/"}, {"opt/a@/srv"}, {"opt/a/new"}},
			map[string]string{"opt/a": "-> /srv", "srv/b": "dir", "srv/new": "3"},
		},
		"a directory becomes a link in one layer": {
			[][]string{{"a/", "a/x", "a@b"}}, map[string]string{"a": "-> b"},
		},
		"a directory becomes a file": {
			[][]string{{"opt/dm/", "opt/dm/x"}, {"opt/dm"}}, map[string]string{"opt/dm": "2"},
		},
		"a link becomes a directory": {
			[][]string{{"etc/", "opt/dm@/etc"}, {"opt/dm/", "opt/dm/x"}},
			map[string]string{"opt/dm": "dir", "opt/dm/x": "2", "etc/x": ""},
		},
		"a mark before its own file": {
			[][]string{{"opt/nw", "opt/keep"}, {"opt/.wh.nw", "opt/nw"}}, map[string]string{"opt/nw": "2", "opt/keep": "1"},
		},
		"a mark after its own file": {
			[][]string{{"opt/nw", "opt/keep"}, {"opt/nw", "opt/.wh.nw"}}, map[string]string{"opt/nw": "2", "opt/keep": "1"},
		},
		"a mark after its own directory": {
			[][]string{{"opt/d/", "opt/d/old"}, {"opt/d/", "opt/d/new", "opt/.wh.d"}},
			map[string]string{"opt/d/new": "2", "opt/d/old": ""},
		},
		"a mark after a directory that no entry names": {
			[][]string{{"opt/d/", "opt/d/old", "opt/d/e/old"}, {"opt/d/e/new", "opt/.wh.d"}},
			map[string]string{"opt/d/e/new": "2", "opt/d/old": "", "opt/d/e/old": ""},
		},
		"a mark of all after a directory that no entry names": {
			[][]string{{"opt/d/old"}, {"opt/d/new", "opt/.wh..wh..opq"}}, map[string]string{"opt/d/new": "2", "opt/d/old": ""},
		},
		"a mark after a hard link": {
			[][]string{{"a", "b"}, {"b=a", ".wh.a"}}, map[string]string{"a": "", "b": "1"},
		},
		"a mark below a file": {
			[][]string{{"opt/f"}, {"opt/f/.wh.x", "opt/f/.wh..wh..opq"}}, map[string]string{"opt/f": "1"},
		},
		"a mark below nothing": {
			[][]string{{"opt/f"}, {"opt/none/.wh.x", "opt/none/.wh..wh..opq"}}, map[string]string{"opt/f": "1", "opt/none": ""},
		},
		"a mark below a link that leads nowhere": {
			[][]string{{"opt/l@/nowhere"}, {"opt/l/.wh.x"}}, map[string]string{"opt/l": "-> /nowhere", "nowhere": ""},
		},
		"a mark through a link": {
			[][]string{{"run/", "run/x", "var/run@/run"}, {"var/run/.wh.x"}},
			map[string]string{"run": "dir", "run/x": "", "var/run": "-> /run"},
		},
		"a mark of what is not there": {
			[][]string{{"opt/f"}, {"opt/.wh.none"}}, map[string]string{"opt/f": "1"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			var layers [][]byte
			for i, entries := range test.layers {
				layers = append(layers, layerOf(t, i+1, entries...))
			}
			tree, err := layered(t, layers...)
			if err != nil {
				t.Fatal(err)
			}
			for at, want := range test.want {
				if got := found(filepath.Join(tree, at)); got != want {
					t.Errorf("%s is %q, not %q", at, got, want)
				}
			}
		})
	}
}

// TestMarksWithoutName: a whiteout that names nothing, or its own directory or the one above,
// removes nothing.
func TestMarksWithoutName(t *testing.T) {
	for _, mark := range []string{".wh.", ".wh..", ".wh..."} {
		tree, err := layered(t, layerOf(t, 1, "opt/a/", "opt/a/x", "opt/b"), layerOf(t, 2, "opt/a/"+mark))
		if problem.ExitCode(err) != int(problem.Mistake) || !strings.Contains(err.Error(), "opt/a/"+mark) {
			t.Errorf("%s: %v", mark, err)
		}
		if got := found(filepath.Join(tree, "opt/a/x")); got != "1" {
			t.Errorf("%s: opt/a/x is %q", mark, got)
		}
	}
}

// TestDirectoryTimes: a directory gets the time of its last entry.
func TestDirectoryTimes(t *testing.T) {
	tree, err := layered(t, layerOf(t, 1, "opt/", "opt/a/", "srv/"), layerOf(t, 2, "opt/", "opt/a/f"))
	if err != nil {
		t.Fatal(err)
	}
	for at, number := range map[string]int64{"opt": 2, "opt/a": 1, "srv": 1} {
		info, err := os.Stat(filepath.Join(tree, at))
		if err != nil || info.ModTime().Unix() != number*1e6 {
			t.Errorf("%s: %v, %v", at, info.ModTime(), err)
		}
	}
}
