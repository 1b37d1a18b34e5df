package facts

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// read returns the text of a file, trimmed; "": there is none.
func (h host) read(path string) string {
	text, _ := os.ReadFile(filepath.Join(h.root, path))
	return strings.TrimSpace(string(text))
}

func (h host) has(path string) bool {
	_, err := os.Stat(filepath.Join(h.root, path))
	return err == nil
}

// number returns the number in a file, and 0 if there is none.
func (h host) number(path string) int64 {
	n, _ := strconv.ParseInt(h.read(path), 10, 64)
	return n
}

// find returns the paths of a pattern, from the root.
func (h host) find(pattern string) []string {
	paths, _ := filepath.Glob(filepath.Join(h.root, pattern))
	for i, path := range paths {
		paths[i], _ = filepath.Rel(h.root, path)
	}
	return paths
}

// link returns the last name of what a symbolic link points to.
func (h host) link(path string) string {
	to, err := os.Readlink(filepath.Join(h.root, path))
	if err != nil {
		return ""
	}
	return filepath.Base(to)
}

// names returns the entries of a directory, which come sorted.
func (h host) names(path string) []string {
	entries, _ := os.ReadDir(filepath.Join(h.root, path))
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
