package disk

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzAnswers: a program in a node may print anything. No parser panics at it; what it gives is
// judged where samples are kept.
func FuzzAnswers(f *testing.F) {
	seeds, err := filepath.Glob("testdata/*")
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range seeds {
		if text, err := os.ReadFile(seed); err == nil { // testdata has directories, too
			f.Add(text)
		}
	}
	f.Fuzz(func(_ *testing.T, text []byte) {
		_, _ = parseFio(text)
		_, _, _ = parseIozone(string(text))
		_, _ = parseBonnie(string(text), blockColumns)
	})
}
