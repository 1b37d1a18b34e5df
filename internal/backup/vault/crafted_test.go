package vault

import (
	"archive/tar"
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"filippo.io/age"
	"golang.org/x/sys/unix"

	"orrery/internal/problem"
	"orrery/internal/treesync"
)

// TestEntriesOfStrangers: a list with an invalid entry is refused.
func TestEntriesOfStrangers(t *testing.T) {
	digest := `"` + digestOf(nil).String() + `"`
	file := func(rest string) string { return `{"p":"a","m":33188,"u":0,"g":0,"t":0` + rest + `}` }
	extent := func(at, size, pieces int) string {
		return fmt.Sprintf(`{"o":%d,"n":%d,"d":[%s]}`, at, size, strings.TrimSuffix(strings.Repeat(digest+",", pieces), ","))
	}
	for what, c := range map[string]struct {
		line string
		ok   bool
	}{
		"an empty file":               {file(""), true},
		"a file":                      {file(`,"s":7,"c":[` + extent(0, 7, 1) + `]`), true},
		"a hole":                      {file(`,"s":7,"c":[` + extent(0, 2, 1) + `,` + extent(5, 2, 1) + `]`), true},
		"parts side by side":          {file(`,"s":7,"c":[` + extent(0, 2, 1) + `,` + extent(2, 5, 1) + `]`), true},
		"two pieces":                  {file(fmt.Sprintf(`,"s":%d,"c":[%s]`, PieceSize+1, extent(0, PieceSize+1, 2))), true},
		"one piece of the whole size": {file(fmt.Sprintf(`,"s":%d,"c":[%s]`, PieceSize, extent(0, PieceSize, 1))), true},
		"a piece too few": {file(fmt.Sprintf(`,"s":%d,"c":[%s]`, PieceSize+1, extent(0, PieceSize+1, 1))),
			false},
		"a piece too many": {file(`,"s":7,"c":[` + extent(0, 7, 2) + `]`), false},
		"over a cut":       {file(fmt.Sprintf(`,"s":%d,"c":[%s]`, 2*PieceSize, extent(PieceSize-1, 2, 2))), true},
		"over a cut, in one piece": {file(fmt.Sprintf(`,"s":%d,"c":[%s]`, 2*PieceSize, extent(PieceSize-1, 2, 1))),
			false},
		"overlapping parts":        {file(`,"s":7,"c":[` + extent(0, 3, 1) + `,` + extent(2, 2, 1) + `]`), false},
		"parts in the wrong order": {file(`,"s":7,"c":[` + extent(5, 2, 1) + `,` + extent(0, 2, 1) + `]`), false},
		"more than the file":       {file(`,"s":7,"c":[` + extent(0, 8, 1) + `]`), false},
		"behind the file":          {file(`,"s":7,"c":[` + extent(6, 2, 1) + `]`), false},
		"an empty part":            {file(`,"s":7,"c":[` + extent(0, 0, 0) + `]`), false},
		"a part of negative size":  {file(`,"s":7,"c":[` + extent(0, -1, 0) + `]`), false},
		"a part before the file":   {file(`,"s":7,"c":[` + extent(-1, 2, 1) + `]`), false},
		"a part beyond all files": {file(`,"s":9223372036854775807,"c":[` + extent(9223372036854775807, 1, 1) + `]`),
			false},
		"a negative size":             {file(`,"s":-1`), false},
		"a directory with content":    {`{"p":"a","m":16877,"u":0,"g":0,"t":0,"s":1}`, false},
		"another name with content":   {file(`,"s":7,"h":"b","c":[` + extent(0, 7, 1) + `]`), false},
		"another name":                {file(`,"h":"b"`), true},
		"another name that leads out": {file(`,"h":"../b"`), false},
		"a link":                      {`{"p":"a","m":41471,"u":0,"g":0,"t":0,"l":"../x"}`, true},
		"the longest link": {`{"p":"a","m":41471,"u":0,"g":0,"t":0,"l":"` +
			strings.Repeat("x", unix.PathMax-1) + `"}`, true},
		"a link that is too long": {`{"p":"a","m":41471,"u":0,"g":0,"t":0,"l":"` + strings.Repeat("x", unix.PathMax) +
			`"}`, false},
		"a link with a zero byte":      {`{"p":"a","m":41471,"u":0,"g":0,"t":0,"l":"a\u0000b"}`, false},
		"a name with a zero byte":      {`{"p":"a\u0000b","m":33188,"u":0,"g":0,"t":0}`, false},
		"a name that is no base64":     {`{"p":"base64:!","m":33188,"u":0,"g":0,"t":0}`, false},
		"attributes beyond any file's": {file(`,"x":{"a":"` + strings.Repeat("A", 3<<20) + `"}`), false},
		"no JSON":                      {`{`, false},
	} {
		if err := eachEntry(strings.NewReader(c.line+"\n"), func(*Entry) error { return nil }); (err == nil) != c.ok {
			t.Errorf("%s: %v", what, err)
		}
	}
}

// TestListRoundTrip: entries that were written are read back unchanged, whatever bytes are in
// names.
func TestListRoundTrip(t *testing.T) {
	want := []Entry{
		{Entry: treesync.Entry{Name: ".", Mode: unix.S_IFDIR | 0o755, Time: -5}},
		{Entry: treesync.Entry{Name: "a\xff\n", Mode: unix.S_IFREG | 0o4755, Uid: 7, Gid: 8}, Ino: 9, Changed: 10},
		{Entry: treesync.Entry{Name: "base64:x", Mode: unix.S_IFLNK | 0o777, Link: "\xfe"}},
		{Entry: treesync.Entry{Name: "dev", Mode: unix.S_IFCHR, Major: 1, Minor: 3, Attrs: treesync.Attrs{"user.x": {0, 1}}}},
	}
	text, err := WriteList(want)
	wanted(t, err)
	// existing backups have this form
	const asKept = `{"p":"dev","m":8192,"u":0,"g":0,"t":0,"major":1,"minor":3,"x":{"user.x":"AAE="}}`
	if lines := strings.Split(string(text), "\n"); lines[0] != `{"p":".","m":16877,"u":0,"g":0,"t":-5}` ||
		lines[3] != asKept || !strings.HasSuffix(lines[1], `,"i":9,"k":10}`) {
		t.Errorf("the list is %s", text)
	}
	var got []Entry
	wanted(t, eachEntry(bytes.NewReader(text), func(e *Entry) error { got = append(got, *e); return nil }))
	wanted(t, eachEntry(bytes.NewReader(bytes.TrimSuffix(text, []byte("\n"))), func(*Entry) error { return nil }))
	if a, b := fmt.Sprintf("%+v", got), fmt.Sprintf("%+v", want); a != b {
		t.Errorf("%s\ninstead of\n%s", a, b)
	}
}

// TestDigestLists: a list of digests is parsed like JSON, and everything else is refused.
func TestDigestLists(t *testing.T) {
	d := `"` + digestOf([]byte("x")).String() + `"`
	for text, want := range map[string]int{
		"[]": 0, "null": 0, "[" + d + "]": 1, "[" + d + "," + d + "]": 2, " [ " + d + " ,\n" + d + " ] ": 2,
		"[" + d + d + "]": -1, "[" + d + ",]": -1, "[,": -1, "[": -1, "7": -1, "{}": -1, `["ab"]`: -1,
		"[" + strings.Replace(d, `"`, `'`, 1) + "]": -1,
		"[" + d[:len(d)-1] + "]":                    -1, "[" + d[:len(d)-1] + "f]": -1,
		"[" + strings.Replace(d, d[1:3], "zz", 1) + "]": -1,
		"[" + d[:10]: -1, "[" + d: -1,
	} {
		var got digests
		err := json.Unmarshal([]byte(text), &got)
		if own := got.UnmarshalJSON([]byte(text)); (own == nil) != (err == nil) {
			t.Errorf("%s: alone it is %v, and within JSON %v", text, own, err)
		}
		if (err != nil) != (want < 0) || err == nil && len(got) != want {
			t.Errorf("%s: %d digests, %v", text, len(got), err)
		}
		for _, one := range got {
			if err == nil && one != digestOf([]byte("x")) {
				t.Errorf("%s: %s", text, one)
			}
		}
	}
}

// TestUnseal: sealed secrets are restored unchanged. From an untrusted archive, only files that can
// be secrets are returned.
func TestUnseal(t *testing.T) {
	key, err := age.GenerateX25519Identity()
	wanted(t, err)
	mine := Secrets{"secrets/token": []byte("t"), "keys/known_hosts": []byte("k")}
	safe, err := mine.Seal([]age.Recipient{key.Recipient()})
	wanted(t, err)
	got, err := Unseal(bytes.NewReader(safe), []age.Identity{key})
	wanted(t, err)
	if !maps.EqualFunc(got, mine, bytes.Equal) {
		t.Errorf("%q", got)
	}
	other, err := age.GenerateX25519Identity()
	wanted(t, err)
	if got, err := Unseal(bytes.NewReader(safe), []age.Identity{other}); err == nil || len(got) > 0 {
		t.Errorf("another key reads %q", got)
	}
	sealed := func(headers ...tar.Header) (Secrets, error) {
		var b bytes.Buffer
		safe, err := age.Encrypt(&b, key.Recipient())
		wanted(t, err)
		w := tar.NewWriter(safe)
		for i := range headers {
			wanted(t, w.WriteHeader(&headers[i]))
		}
		wanted(t, w.Close())
		wanted(t, safe.Close())
		return Unseal(&b, []age.Identity{key})
	}
	got, err = sealed(tar.Header{Name: "secrets/link", Typeflag: tar.TypeSymlink, Linkname: "/etc/shadow"},
		tar.Header{Name: "secrets/dir", Typeflag: tar.TypeDir},
		tar.Header{Name: "notes", Typeflag: tar.TypeReg}, tar.Header{Name: "secrets/good", Typeflag: tar.TypeReg})
	wanted(t, err)
	if names := got.Names(); !slices.Equal(names, []string{"secrets/good"}) {
		t.Errorf("%v come out", names)
	}
	if got, err := sealed(tar.Header{Name: "secrets/../../x", Typeflag: tar.TypeReg}); err == nil {
		t.Errorf("what leads out comes out: %v", got.Names())
	}
}

// TestPassphrase: only the right passphrase decrypts secrets, and an untrusted backup cannot make
// the key derivation take all memory.
func TestPassphrase(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		wanted(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	right, empty := file("right", "correct horse\n"), file("empty", "\r\n")
	with, err := Identities("", right)
	wanted(t, err)
	recipient, err := age.NewScryptRecipient("correct horse") // without the end of the line
	wanted(t, err)
	recipient.SetWorkFactor(10)
	safe, err := Secrets{"secrets/token": []byte("t")}.Seal([]age.Recipient{recipient})
	wanted(t, err)
	if got, err := Unseal(bytes.NewReader(safe), with); err != nil || string(got["secrets/token"]) != "t" {
		t.Errorf("%q, %v", got, err)
	}
	costly := bytes.Replace(safe, []byte(" 10\n"), []byte(" 19\n"), 1)
	if _, err := Unseal(bytes.NewReader(costly), with); err == nil || !strings.Contains(err.Error(), "work factor") {
		t.Errorf("a derivation of 512 MiB: %v", err)
	}
	key, err := age.GenerateX25519Identity()
	wanted(t, err)
	both, err := Identities(file("key", key.String()+"\n"), right)
	if err != nil || len(both) != 2 {
		t.Errorf("a key and a passphrase are %d, %v", len(both), err)
	}
	for what, call := range map[string]func() error{
		"an empty passphrase": func() error { _, err := Identities("", empty); return err },
		"no such passphrase":  func() error { _, err := Identities("", filepath.Join(dir, "none")); return err },
		"no such key":         func() error { _, err := Identities(filepath.Join(dir, "none"), ""); return err },
		"no key":              func() error { _, err := Identities(right, ""); return err },
		"a passphrase and keys": func() error {
			_, err := Recipients([]string{key.Recipient().String()}, right)
			return err
		},
		"for an empty passphrase": func() error { _, err := Recipients(nil, empty); return err },
		"for no public key":       func() error { _, err := Recipients([]string{"age1x"}, ""); return err },
	} {
		if err := call(); !problem.Is(err, problem.Usage) {
			t.Errorf("%s: %v", what, err)
		}
	}
	to, err := Recipients([]string{key.Recipient().String(), key.Recipient().String()}, "")
	if err != nil || len(to) != 2 {
		t.Errorf("two keys are %d, %v", len(to), err)
	}
}

// filledWith puts one piece of content into a vault.
func filledWith(t *testing.T, v Vault, content string) Digest {
	t.Helper()
	p := NewPacker(v)
	d, err := p.Add([]byte(content))
	wanted(t, err)
	wanted(t, p.Close())
	return d
}

// TestIndexesAreMerged: after any number of backups, there are few index files, and together they
// list all blocks.
func TestIndexesAreMerged(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "v")
	var all []Digest
	for n := range 2*maxIndexes + 3 {
		r, err := WriteRepository(dir)
		wanted(t, err)
		all = append(all, filledWith(t, r, fmt.Sprint("content ", n)))
		wanted(t, r.Settle())
		names, err := r.indexes.names()
		wanted(t, err)
		if len(names) > maxIndexes {
			t.Fatalf("after %d backups there are %d index files", n+1, len(names))
		}
		known := 0
		for _, name := range names {
			some, err := r.indexes.read(name)
			wanted(t, err)
			known += len(some)
		}
		if known != n+1 {
			t.Fatalf("after %d backups the index files tell of %d blocks", n+1, known)
		}
		wanted(t, r.Close())
	}
	r, err := OpenRepository(dir)
	wanted(t, err)
	defer r.Close() //nolint:errcheck // it was only read
	for _, d := range all {
		if _, ok := r.pieceIndex().find(d); !ok {
			t.Errorf("%s is not found", d)
		}
	}
}

// TestEveryByteOfAnArchive: Verify notices every changed, missing or additional byte of an archive.
func TestEveryByteOfAnArchive(t *testing.T) {
	path := filepath.Join(t.TempDir(), "b.tar")
	a, err := WriteArchive(path)
	wanted(t, err)
	list, err := WriteList([]Entry{{Entry: treesync.Entry{Name: ".", Mode: unix.S_IFDIR | 0o700}}})
	wanted(t, err)
	d := filledWith(t, a, string(list))
	m := &Manifest{
		Format: Format, Site: "s", Key: "s", Time: noon,
		Trees: bounded[Tree]{{Name: "site", Kind: SiteTree, Entries: 1, List: digests{d}}},
	}
	id, err := a.Commit(m)
	wanted(t, err)
	wanted(t, a.Close())
	whole, err := os.ReadFile(path)
	wanted(t, err)
	sound := func(text []byte) error {
		wanted(t, os.WriteFile(path, text, 0o600))
		a, err := OpenArchive(path)
		if err != nil {
			return err
		}
		defer a.Close() //nolint:errcheck // it was only read
		return a.Verify(t.Context(), id, func(int64) {})
	}
	wanted(t, sound(whole))
	for i := range whole {
		spoilt := slices.Clone(whole)
		spoilt[i] ^= 0x41
		if sound(spoilt) == nil {
			t.Errorf("byte %d of %d can change", i, len(whole))
		}
	}
	for n := 0; n < len(whole); n += 61 {
		if sound(whole[:n]) == nil {
			t.Errorf("it can be cut to %d of %d bytes", n, len(whole))
		}
	}
	for _, more := range [][]byte{{0}, make([]byte, tarBlock), []byte("x")} {
		if sound(slices.Concat(whole, more)) == nil {
			t.Errorf("%d bytes can follow", len(more))
		}
	}
}
