package bundle

import (
	"archive/tar"
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// TestCarry: the measured data are sent, and nothing else of a bundle.
func TestCarry(t *testing.T) {
	dir, w := begin(t)
	must(t, w.WriteExperiment([]byte("x")))
	must(t, w.WriteFacts(map[string]string{"kernel": "6.1"}))
	must(t, w.AppendTrial(Trial{Round: 1}))
	must(t, w.WriteOutput("a", []byte("{}")))
	must(t, w.Close())
	var out bytes.Buffer
	must(t, Pack(dir, &out))
	to := filepath.Join(t.TempDir(), "b")
	must(t, Unpack(&out, to))
	c, err := Read(to)
	must(t, err)
	if len(c.Trials) != 1 || c.Facts == nil || c.Experiment != nil || c.Manifest.Who != "ada" {
		t.Errorf("what came is %+v", c)
	}
	all, err := os.ReadDir(to)
	must(t, err)
	if len(all) != 4 {
		t.Errorf("what came is %v", all)
	}
	if err := Unpack(&bytes.Buffer{}, filepath.Join(t.TempDir(), "b")); !errors.Is(err, io.EOF) {
		t.Errorf("nothing: %v", err)
	}
}

// TestHostileCarry: what a host sends instead of a bundle is not written anywhere.
func TestHostileCarry(t *testing.T) {
	reg := func(name string) *tar.Header { return &tar.Header{Name: name, Typeflag: tar.TypeReg, Size: 1} }
	for what, headers := range map[string][]*tar.Header{
		"up":          {reg("../escaped")},
		"absolute":    {reg("/escaped")},
		"a report":    {reg("report.html")},
		"a site":      {reg("site/site.toml")},
		"twice":       {reg(ManifestFile), reg(ManifestFile)},
		"backwards":   {reg(TrialsFile), reg(ManifestFile)},
		"below":       {reg(ManifestFile + "/x")},
		"a link":      {{Name: ManifestFile, Typeflag: tar.TypeSymlink, Linkname: "/etc/passwd"}},
		"a hard link": {{Name: TrialsFile, Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}},
		"a directory": {{Name: TrialsFile, Typeflag: tar.TypeDir}},
		"a device":    {{Name: FactsFile, Typeflag: tar.TypeChar}},
		"too large":   {{Name: ManifestFile, Typeflag: tar.TypeReg, Size: maxManifestBytes + 1}},
		"cut short":   {{Name: ManifestFile, Typeflag: tar.TypeReg, Size: 100}},
	} {
		dir := t.TempDir()
		var stream bytes.Buffer
		out := tar.NewWriter(&stream)
		for _, h := range headers {
			must(t, out.WriteHeader(h))
			if h.Typeflag == tar.TypeReg && h.Size == 1 {
				_, err := out.Write([]byte("x"))
				must(t, err)
			}
		}
		_ = out.Flush()
		if err := Unpack(&stream, filepath.Join(dir, "b")); err == nil {
			t.Errorf("%s: it is taken", what)
		}
		beside, err := os.ReadDir(dir)
		if err != nil || len(beside) > 1 {
			t.Errorf("%s: it has come to %v (%v)", what, beside, err)
		}
	}
}
