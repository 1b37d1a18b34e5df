package net

import (
	"os"
	"path/filepath"
	"testing"
)

// FuzzAnswers: a program in a node may print anything. The parsers must not panic. Values are
// checked where samples are stored.
//
// Promise (Files of strangers): No output of a program in a node makes a parser of the lab panic.
// With lab/test/disk.FuzzAnswers, lab/test/cpu.FuzzAnswers, lab/test/micro.FuzzAnswers,
// lab/test/mpi.FuzzAnswers, lab/test/capture.FuzzAnswers, lab/test/command.FuzzAnswers.
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
		_, _ = parseIperf(text)
		_, _ = parseSockperf(text)
	})
}
