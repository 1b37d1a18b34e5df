package internal

import (
	"go/scanner"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

const (
	maxColumns = 120
	longText   = 30 // columns of a string that stays on one line, so that one can search for it
)

// TestLines: no line is longer than maxColumns, except for long strings.
func TestLines(t *testing.T) {
	err := filepath.WalkDir("..", func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() && (entry.Name() == "testdata" || entry.Name() == "build") {
			if err == nil {
				err = filepath.SkipDir
			}
			return err
		}
		if entry.IsDir() || !strings.HasSuffix(path, ".go") {
			return nil
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		long := map[int]bool{}
		for i, line := range strings.Split(string(content), "\n") {
			if utf8.RuneCountInString(line) > maxColumns {
				long[i+1] = true
			}
		}
		forgiveTexts(content, long)
		for line := range long {
			t.Errorf("%s:%d: the line has more than %d columns", path, line, maxColumns)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

// forgiveTexts removes lines with a long string, or a part of one, and lines of tables in comments.
func forgiveTexts(content []byte, long map[int]bool) {
	if len(long) == 0 {
		return
	}
	fset := token.NewFileSet()
	file := fset.AddFile("", -1, len(content))
	var s scanner.Scanner
	s.Init(file, content, nil, scanner.ScanComments)
	for {
		pos, kind, text := s.Scan()
		switch {
		case kind == token.EOF:
			return
		case kind == token.STRING && len(text) >= longText,
			strings.HasPrefix(text, "//\t"), strings.HasPrefix(text, "//nolint"), strings.HasPrefix(text, "//go:"):
			first := file.Line(pos)
			for i := range strings.Count(text, "\n") + 1 {
				delete(long, first+i)
			}
		}
	}
}
