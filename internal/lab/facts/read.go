package facts

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// rootFiles are the files below a root.
type rootFiles struct{ root string }

// read returns the text of a file, trimmed; "": there is none.
func (f rootFiles) read(path string) string {
	text, _ := os.ReadFile(filepath.Join(f.root, path))
	return strings.TrimSpace(string(text))
}

func (f rootFiles) has(path string) bool {
	_, err := os.Stat(filepath.Join(f.root, path))
	return err == nil
}

// number returns the number in a file, and 0 if there is none.
func (f rootFiles) number(path string) int64 {
	n, _ := strconv.ParseInt(f.read(path), 10, 64)
	return n
}

// find returns the paths of a pattern, from the root.
func (f rootFiles) find(pattern string) []string {
	paths, _ := filepath.Glob(filepath.Join(f.root, pattern))
	for i, path := range paths {
		paths[i], _ = filepath.Rel(f.root, path)
	}
	return paths
}

// link returns the last name of what a symbolic link points to.
func (f rootFiles) link(path string) string {
	to, err := os.Readlink(filepath.Join(f.root, path))
	if err != nil {
		return ""
	}
	return filepath.Base(to)
}

// names returns the entries of a directory, which come sorted.
func (f rootFiles) names(path string) []string {
	entries, _ := os.ReadDir(filepath.Join(f.root, path))
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

// chosen returns the word that is marked among alternatives, as in "none [mq-deadline] bfq".
func chosen(text, open, closed string) string {
	_, rest, ok := strings.Cut(text, open)
	if !ok {
		return ""
	}
	word, _, _ := strings.Cut(rest, closed)
	return word
}

// Numbers returns the numbers of a list as the kernel writes it, such as "0-3,8": what is no list has none.
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
