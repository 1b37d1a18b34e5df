package main

import (
	"bufio"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"strings"
	"time"
)

// A test is one test of a package, with the parts of the mutated package that it runs.
type test struct {
	suite  suite
	name   string
	took   time.Duration
	blocks []block
}

// A suite is the tests of one package.
type suite struct{ path, dir string }

// A block is a part of a file that always runs as a whole.
type block struct {
	file                             string
	fromLine, fromCol, toLine, toCol int
}

// runs reports whether the test runs the place of a mutation.
func (t test) runs(m mutation) bool {
	for _, b := range t.blocks {
		if b.file == inPackage(m.file) &&
			(b.fromLine < m.reach.Line || b.fromLine == m.reach.Line && b.fromCol <= m.reach.Column) &&
			(m.reach.Line < b.toLine || m.reach.Line == b.toLine && m.reach.Column <= b.toCol) {
			return true
		}
	}
	return false
}

// inPackage returns a file's name with its last directory. The result is the same for its path and
// for its import path.
func inPackage(file string) string { return path.Join(path.Base(path.Dir(file)), path.Base(file)) }

// readCoverage reads the blocks that were run from a directory of "go test -test.gocoverdir". All
// processes of a test write there.
func readCoverage(dir string) ([]block, error) {
	profile := filepath.Join(dir, "profile")
	if out, err := exec.Command("go", "tool", "covdata", "textfmt", "-i="+dir,
		"-o="+profile).CombinedOutput(); err != nil {
		return nil, fmt.Errorf("go tool covdata: %w: %s", err, out)
	}
	f, err := os.Open(profile)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var blocks []block
	lines := bufio.NewScanner(f)
	for lines.Scan() {
		file, rest, ok := strings.Cut(lines.Text(), ":")
		var b block
		var statements, count int
		_, err := fmt.Sscanf(rest, "%d.%d,%d.%d %d %d", &b.fromLine, &b.fromCol, &b.toLine, &b.toCol, &statements, &count)
		if ok && err == nil && count > 0 {
			b.file = inPackage(file)
			blocks = append(blocks, b)
		}
	}
	return blocks, lines.Err()
}
