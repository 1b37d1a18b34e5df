package facts

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// rootFiles reads files below a root directory.
type rootFiles struct{ root string }

// read returns the trimmed text of a file, or "" if there is none.
func (f rootFiles) read(path string) string {
	text, _ := os.ReadFile(filepath.Join(f.root, path))
	return strings.TrimSpace(string(text))
}

func (f rootFiles) has(path string) bool {
	_, err := os.Stat(filepath.Join(f.root, path))
	return err == nil
}

// number returns the number in a file, or 0 if there is none.
func (f rootFiles) number(path string) int64 {
	n, _ := strconv.ParseInt(f.read(path), 10, 64)
	return n
}

// find returns the paths that match a pattern, relative to the root.
func (f rootFiles) find(pattern string) []string {
	paths, _ := filepath.Glob(filepath.Join(f.root, pattern))
	for i, path := range paths {
		paths[i], _ = filepath.Rel(f.root, path)
	}
	return paths
}

// link returns the last element of a symbolic link's target.
func (f rootFiles) link(path string) string {
	to, err := os.Readlink(filepath.Join(f.root, path))
	if err != nil {
		return ""
	}
	return filepath.Base(to)
}

// names returns the sorted entries of a directory.
func (f rootFiles) names(path string) []string {
	entries, _ := os.ReadDir(filepath.Join(f.root, path))
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// selectedWord returns the marked word among alternatives, as in "none [mq-deadline] bfq".
func selectedWord(text, open, closed string) string {
	_, rest, ok := strings.Cut(text, open)
	if !ok {
		return ""
	}
	word, _, _ := strings.Cut(rest, closed)
	return word
}

// Numbers returns the numbers of a list in the kernel's format, such as "0-3,8". Invalid parts are
// skipped.
func Numbers(list string) []int {
	var all []int
	for part := range strings.SplitSeq(strings.TrimSpace(list), ",") {
		first, last, isRange := strings.Cut(part, "-")
		from, err := strconv.Atoi(first)
		if err != nil {
			continue
		}
		to := from
		if isRange {
			if to, err = strconv.Atoi(last); err != nil {
				continue
			}
		}
		for n := from; n <= to; n++ {
			all = append(all, n)
		}
	}
	return all
}
