package mpi

import (
	"os"
	"path/filepath"
	"testing"

	"orrery/internal/lab/place"
)

// FuzzAnswers: a program in a node may print anything. The parsers must not panic. Values are
// checked where samples are stored.
func FuzzAnswers(f *testing.F) {
	seeds, err := filepath.Glob("testdata/*")
	if err != nil {
		f.Fatal(err)
	}
	for _, seed := range seeds {
		if text, err := os.ReadFile(seed); err == nil { // testdata also has directories
			f.Add(text)
		}
	}
	f.Fuzz(func(_ *testing.T, text []byte) {
		_, _ = imb{}.parse(text)
		_, _ = orrery{}.parse(text)
		_ = place.ParseTraffic(string(text))
	})
}
