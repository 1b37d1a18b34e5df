package sitefile

import (
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"orrery/internal/problem"
)

// maxFile bounds the files that are read into the model. What is greater belongs elsewhere.
const maxFile = 16 << 20

// readBounded reads a file. What it says is wrong needs no place.
func readBounded(path string) ([]byte, *problem.Problem) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, missing(path)
	case !info.Mode().IsRegular():
		return nil, mistake("%s is no file", path).Try("name a file")
	case info.Size() > maxFile:
		return nil, mistake("%s has %d MiB, more than %d", path, info.Size()>>20, maxFile>>20).Try("is it the right file?")
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, mistake("%v", err).Try("make it readable")
	}
	defer file.Close()
	content, err := io.ReadAll(io.LimitReader(file, maxFile)) // what its size says is not all that a file of /proc has
	if err != nil {
		return nil, mistake("%v", err).Try("make it readable")
	}
	return content, nil
}

// missing tells what is near a file that is not there.
func missing(path string) *problem.Problem {
	p := mistake("there is no file %s", path)
	var beside []string
	entries, _ := os.ReadDir(filepath.Dir(path))
	for _, e := range entries {
		beside = append(beside, e.Name())
	}
	if nearest := problem.Nearest(filepath.Base(path), beside); nearest != "" {
		return p.Try("%s is the nearest", filepath.Join(filepath.Dir(path), nearest))
	}
	return p.Try("create it or correct the path")
}

// stamp tells one state of an imported image from another, without reading it.
func stamp(path string) (string, *problem.Problem) {
	info, err := os.Stat(path)
	if err == nil && info.IsDir() {
		// An OCI layout: every change of it is a change of its index.
		path = filepath.Join(path, "index.json")
		info, err = os.Stat(path)
	}
	if err != nil {
		return "", missing(path)
	}
	return fmt.Sprintf("%d-%d", info.Size(), info.ModTime().UnixNano()), nil
}

// within reports whether a file is in a directory.
func within(dir, path string) bool {
	rel, err := filepath.Rel(dir, path)
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}
