// Command draw prints texts of this repository, drawn at random, to be read against the rules for
// their language: doc comments, messages to users, or sentences of the documents. The same seed
// draws the same texts as long as the texts do not change.
package main

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strings"
)

const usage = `usage: draw [-n N] [-seed S] comments|messages|sentences

`

func main() {
	flag.Usage = func() { fmt.Fprint(os.Stderr, usage); flag.PrintDefaults() }
	n := flag.Int("n", 30, "number of texts")
	seed := flag.Uint64("seed", 1, "chooses the texts")
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	if err := draw(flag.Arg(0), *n, *seed); err != nil {
		fmt.Fprintln(os.Stderr, "draw:", err)
		os.Exit(1)
	}
}

// A text is one of the texts to choose from, on one line.
type text struct{ where, what string }

// draw prints n texts of a kind.
func draw(kind string, n int, seed uint64) error {
	collect := map[string]func(file string, content []byte) ([]text, error){
		"comments": comments, "messages": messages, "sentences": sentences,
	}[kind]
	if collect == nil {
		return fmt.Errorf("unknown kind of texts %q", kind)
	}
	files, err := listFiles(kind)
	if err != nil {
		return err
	}
	var all []text
	for _, file := range files {
		content, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		found, err := collect(file, content)
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	fmt.Printf("%d of %d %s, seed %d\n", min(n, len(all)), len(all), kind, seed)
	for i, t := range choose(all, n, seed) {
		fmt.Printf("%2d. %s: %s\n", i+1, t.where, t.what)
	}
	return nil
}

// choose returns n texts in random order, or all if there are fewer.
func choose(all []text, n int, seed uint64) []text {
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	return all[:min(n, len(all))]
}

// listFiles returns the files of the repository that have texts of a kind, sorted. Tests and their
// data are left out, and decisions, which are records of their time.
func listFiles(kind string) (files []string, err error) {
	patterns := []string{"internal/*.go", "cmd/*.go", "test/*/*.go"}
	if kind == "sentences" {
		patterns = []string{"README.md", "docs/*.md"}
	}
	out, err := exec.Command("git", append([]string{"ls-files", "--"}, patterns...)...).Output()
	if err != nil {
		return nil, err
	}
	for file := range strings.Lines(string(out)) {
		file = strings.TrimSuffix(file, "\n")
		if !strings.HasSuffix(file, "_test.go") && !strings.Contains(file, "/testdata/") &&
			!strings.HasPrefix(file, "docs/decisions/0") {
			files = append(files, file)
		}
	}
	if len(files) == 0 {
		return nil, errors.New("no files: run this in the root of the repository")
	}
	return files, nil
}
