package image

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"orrery/internal/image/foreign"
	"orrery/internal/problem"
	"orrery/internal/site"
	"orrery/internal/site/spec"
)

func diskOf(file string) *spec.Layer {
	return spec.Base(site.Mirror{}, site.Image{Name: "cloud", Import: file, Stamp: "1"})
}

// TestTakeDisk: a disk image becomes a layer of the store unchanged, including its holes.
func TestTakeDisk(t *testing.T) {
	s, file := Open(t.TempDir()), filepath.Join(t.TempDir(), "cloud.raw")
	f, err := os.Create(file)
	must(t, err)
	_, err = f.WriteAt([]byte("boots"), 1<<20)
	must(t, err)
	must(t, f.Truncate(64<<20))
	must(t, f.Close())
	l := diskOf(file)
	must(t, s.BuildBase(t.Context(), l, site.Mirror{}, sayTo(t)))
	opened, info, err := s.OpenDisk(l.Digest)
	must(t, err)
	defer opened.Close()
	if *info != (foreign.Disk{Format: foreign.Raw, Size: 64 << 20}) {
		t.Errorf("%+v", info)
	}
	text := make([]byte, 5)
	if _, err := opened.ReadAt(text, 1<<20); err != nil || string(text) != "boots" {
		t.Errorf("%q, %v", text, err)
	}
	r, err := s.Record(l.Digest)
	if err != nil || r.Size > 8<<20 || r.Content == "" {
		t.Errorf("%+v, %v", r, err)
	}
	must(t, s.BuildBase(t.Context(), l, site.Mirror{}, func(what string) { t.Errorf("it is taken twice: %s", what) }))
}

// TestDisksOfStrangers: host files that an image names are never opened. A rejected image is
// reported with its path and a remedy, and nothing of it remains.
func TestDisksOfStrangers(t *testing.T) {
	dir := t.TempDir()
	var blank bytes.Buffer
	f, err := os.Create(filepath.Join(dir, "blank"))
	must(t, err)
	must(t, foreign.CreateEmpty(f, 1<<30))
	_, err = f.Seek(0, io.SeekStart)
	must(t, err)
	_, err = io.Copy(&blank, f)
	must(t, err)
	must(t, f.Close())
	backed := bytes.Clone(blank.Bytes())
	backed[15], backed[19] = 112, 11
	copy(backed[112:], "/etc/shadow")
	for name, try := range map[string]struct {
		content []byte
		want    string
	}{
		"backed.qcow2":  {backed, "backing file"},
		"wrong.qcow2":   {make([]byte, 1024), "not a qcow2 image"},
		"damaged.qcow2": {blank.Bytes()[:1<<17], "damaged"},
		"json:{\"driver\":\"file\",\"filename\":\"x\"}.raw": {backed, "begins like a qcow2 image"},
	} {
		s, file := Open(t.TempDir()), filepath.Join(dir, name)
		must(t, os.WriteFile(file, try.content, 0o600))
		err := s.BuildBase(t.Context(), diskOf(file), site.Mirror{}, sayTo(t))
		var p *problem.Problem
		if !errors.As(err, &p) || p.Kind != problem.Mistake || p.Cure == "" || !strings.Contains(p.What, try.want) ||
			!strings.Contains(p.What, file) {
			t.Errorf("%s: %v", name, err)
		}
		if left, _ := s.Layers(); len(left) > 0 {
			t.Errorf("%s: %v stays", name, left)
		}
	}
	s, file := Open(t.TempDir()), filepath.Join(dir, "large.raw")
	must(t, os.WriteFile(file, make([]byte, 4<<20), 0o600))
	s.disk.free = func(string) (uint64, error) { return minBaseSpace, nil }
	if err := s.BuildBase(t.Context(), diskOf(file), site.Mirror{}, sayTo(t)); err != nil {
		t.Errorf("for which there is room: %v", err)
	}
	huge := filepath.Join(dir, "huge.raw")
	must(t, os.WriteFile(huge, make([]byte, minBaseSpace/2+4<<20), 0o600))
	var p *problem.Problem
	if err := s.BuildBase(t.Context(), diskOf(huge), site.Mirror{}, sayTo(t)); !errors.As(err, &p) ||
		p.Kind != problem.Unable || !strings.Contains(p.What, "full") {
		t.Errorf("%v", err)
	}
	must(t, os.Remove(filepath.Join(dir, "backed.qcow2")))
	if err := s.BuildBase(t.Context(), diskOf(filepath.Join(dir, "backed.qcow2")), site.Mirror{},
		sayTo(t)); !errors.As(err, &p) || p.Kind != problem.Mistake {
		t.Errorf("of none: %v", err)
	}
}
