package secret

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"orrery/internal/problem"
)

// TestStored: the value and the generation are stored in one file. The first generation is the value
// alone, and what cannot be read is an error.
func TestStored(t *testing.T) {
	k := Store{filepath.Join(t.TempDir(), "secrets")}
	if all, err := k.Generations(); len(all) > 0 || err != nil {
		t.Errorf("without a directory: %v, %v", all, err)
	}
	if _, err := k.Read("db"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	for _, s := range []Stored{{"abc", 1}, {"def", 2}, {"ghi", 1 << 30}, {"", 7}} {
		if err := k.Replace("db", s); err != nil {
			t.Fatal(err)
		}
		if got, err := k.Read("db"); got != s || err != nil {
			t.Errorf("%+v, %v", got, err)
		}
		if err := k.Put("db", s); err != nil {
			t.Error(err)
		}
		if err := k.Put("db", Stored{"other", s.Generation}); !problem.Is(err, problem.Surprise) {
			t.Error(err)
		}
	}
	if all, err := k.Generations(); len(all) != 1 || all["db"] != 7 || err != nil {
		t.Errorf("%v, %v", all, err)
	}
	if err := k.Replace("../db", Stored{"abc", 1}); !problem.Is(err, problem.Mistake) {
		t.Error(err)
	}
	for _, text := range []string{"abc\n", "abc\n3\n", "abc\ngeneration 0\n", "abc\ngeneration x\n",
		"a\nb\ngeneration 2\n", "abc\ngeneration 1073741825\n"} {
		if err := os.WriteFile(filepath.Join(k.Dir, "db"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if got, err := k.Read("db"); !problem.Is(err, problem.Failed) {
			t.Errorf("%q: %+v, %v", text, got, err)
		}
		if _, err := k.Generations(); err == nil {
			t.Errorf("%q is a generation", text)
		}
	}
}
