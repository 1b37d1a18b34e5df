package edition

import (
	"archive/tar"
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// TestTravel: an edition is the same where it comes to, and another one has another digest.
func TestTravel(t *testing.T) {
	from, to := t.TempDir(), t.TempDir()
	must(t, os.MkdirAll(filepath.Join(from, "site/roles/web"), 0o700))
	must(t, os.MkdirAll(filepath.Join(from, "volumes"), 0o700))
	for name, text := range map[string]string{"release.json": `{"number":700}`, "site/site.toml": "x", "site/roles/web/role.toml": "y", "site/roles-old": "z", "volumes/data": "large"} {
		must(t, os.WriteFile(filepath.Join(from, name), []byte(text), 0o600))
	}
	var stream bytes.Buffer
	must(t, Pack(t.Context(), from, &stream))
	was, err := Digest(from)
	must(t, err)
	came, err := Unpack(&stream, to)
	must(t, err)
	is, err := Digest(to)
	must(t, err)
	if was != came || came != is || len(is) != len("sha256:")+64 {
		t.Errorf("the digests are %s, %s and %s", was, came, is)
	}
	text, err := os.ReadFile(filepath.Join(to, "release.json"))
	if err != nil || string(text) != `{"number":700}` {
		t.Errorf("the record is %s: %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(to, "volumes")); err == nil {
		t.Error("volumes have come, too")
	}
	record := func(text string) string {
		must(t, os.WriteFile(filepath.Join(to, "release.json"), []byte(text), 0o600))
		digest, err := Digest(to)
		must(t, err)
		return digest
	}
	if again := record(`{"number":700,"who":"somebody else"}`); again != is {
		t.Error("who staged it counts")
	}
	if other := record(`{"images":{"debian":"sha256:00"}}`); other == is || other == record(`{"images":{"debian":"sha256:01"}}`) {
		t.Error("what images are made from does not count")
	}
	must(t, os.WriteFile(filepath.Join(to, "site/site.toml"), []byte("X"), 0o600))
	if is, err = Digest(to); err != nil || is == was {
		t.Errorf("another one has the digest %s: %v", is, err)
	}
}

// TestHostileEdition: what a host sends in the place of an edition comes nowhere but where it shall.
func TestHostileEdition(t *testing.T) {
	const good = "site/site.toml"
	reg := func(name string) *tar.Header { return &tar.Header{Name: name, Typeflag: tar.TypeReg, Size: 1} }
	for what, headers := range map[string][]*tar.Header{
		"up":              {reg("site/../../escaped")},
		"absolute":        {reg("/escaped")},
		"volumes":         {reg("volumes/x")},
		"twice":           {reg(good), reg(good)},
		"below a file":    {reg("site/a"), reg("site/a/b")},
		"a link":          {{Name: "site/link", Typeflag: tar.TypeSymlink, Linkname: "/etc"}},
		"a hard link":     {reg(good), {Name: "site/t", Typeflag: tar.TypeLink, Linkname: "/etc/passwd"}},
		"a device":        {{Name: "site/dev", Typeflag: tar.TypeChar}},
		"a long name":     {reg("site/" + strings.Repeat("a/", 3000) + "b")},
		"no clean path":   {reg("site//x")},
		"the top":         {reg("site")},
		"a large file":    {{Name: good, Typeflag: tar.TypeReg, Size: MaxBytes + 1}},
		"no release.json": {reg("release.json/x")},
	} {
		dir := t.TempDir()
		top := filepath.Join(dir, "top")
		must(t, os.Mkdir(top, 0o700))
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
		if _, err := Unpack(&stream, top); err == nil {
			t.Errorf("%s: it is taken", what)
		}
		beside, err := os.ReadDir(dir)
		if err != nil || len(beside) != 1 {
			t.Errorf("%s: it has come to %v (%v)", what, beside, err)
		}
	}
	if _, err := Unpack(strings.NewReader("nothing"), t.TempDir()); err == nil {
		t.Error("what is no archive is taken")
	}
}
