// Command mutate finds small faults in one package that no hermetic test notices. It makes one
// fault at a time and prints those that survive all tests. It changes no file of the worktree: the
// compiler reads the mutated file instead of the original ("go test -overlay").
package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"
)

const usage = `usage: mutate [-n N] [-seed S] [-in PLACES] [-tests PACKAGES] PACKAGE

`

func main() {
	flag.Usage = func() { fmt.Fprint(os.Stderr, usage); flag.PrintDefaults() }
	n := flag.Int("n", 40, "how many mutations; 0: all")
	seed := flag.Uint64("seed", 1, "chooses the mutations")
	in := flag.String("in", "", "only mutations whose FILE:LINE this regular expression matches")
	tests := flag.String("tests", "", "packages whose tests run besides, separated by spaces")
	flag.Parse()
	if flag.NArg() != 1 {
		flag.Usage()
		os.Exit(2)
	}
	places, err := regexp.Compile(*in)
	if err == nil {
		err = mutate(flag.Arg(0), strings.Fields(*tests), places, *n, *seed)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutate:", err)
		os.Exit(1)
	}
}

// mutate tries n mutations of a package and prints those that survive.
func mutate(pkg string, others []string, places *regexp.Regexp, n int, seed uint64) error {
	scratch, err := os.MkdirTemp("", "mutate-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(scratch)                                    //nolint:errcheck // a scratch directory
	if err := os.Chmod(scratch, 0o777|os.ModeSticky); err != nil { // the tests run as another user
		return err
	}
	l := &lab{scratch: scratch}
	all, err := l.find(pkg)
	if err != nil {
		return err
	}
	all = slices.DeleteFunc(all, func(m mutation) bool {
		return !places.MatchString(fmt.Sprintf("%s:%d", filepath.Base(m.file), m.at.Line))
	})
	if err := l.measure(pkg, append([]string{pkg}, others...)); err != nil {
		return err
	}
	rand.New(rand.NewPCG(seed, 0)).Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	results := map[result]int{}
	tried := 0
	for _, m := range all {
		if n > 0 && tried == n {
			break
		}
		r, err := l.try(m)
		if err != nil {
			return err
		}
		results[r]++
		if r != invalid {
			tried++
		}
		if r == survived || r == unreached {
			l.print(m, r)
		}
	}
	if tried == 0 {
		return fmt.Errorf("%s: there is nothing to mutate", pkg)
	}
	killed := results[failed] + results[late]
	fmt.Printf("%s: %d of %d mutations killed (%d %%), %d of them by the time limit; %d survived; no test runs %d. "+
		"Seed %d; %d possible.\n",
		pkg, killed, tried, 100*killed/tried, results[late], results[survived], results[unreached], seed, len(all))
	return nil
}

// A lab is the state shared by all mutations of one run.
type lab struct {
	scratch string
	tests   []test // the quickest first
}

// find returns all mutations of a package.
func (l *lab) find(pkg string) ([]mutation, error) {
	out, err := exec.Command("go", "list", "-f", `{{range .GoFiles}}{{$.Dir}}/{{.}}{{"\n"}}{{end}}`, pkg).Output()
	if err != nil {
		return nil, fmt.Errorf("%s: %w", pkg, explain(err))
	}
	var all []mutation
	for _, file := range strings.Fields(string(out)) {
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		found, err := mutationsOf(file, source)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// measure runs each test alone, to measure how long it takes and what of the package it runs.
func (l *lab) measure(pkg string, paths []string) error {
	out, err := exec.Command("go",
		append([]string{"list", "-f", "{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}} {{.Dir}}{{end}}"}, paths...)...).
		Output()
	if err != nil {
		return explain(err)
	}
	for line := range strings.Lines(string(out)) {
		s := suite{}
		if _, err := fmt.Sscan(line, &s.path, &s.dir); err != nil {
			return err
		}
		program, err := l.build(s, "-cover", "-coverpkg="+pkg)
		if err != nil {
			return err
		}
		names, err := run(s, time.Minute, program, "-test.list=^(Test|Fuzz|Example)")
		if err != nil {
			return fmt.Errorf("%s: %w", s.path, err)
		}
		for _, name := range strings.Fields(names) {
			l.measureOne(test{suite: s, name: name}, program)
		}
	}
	slices.SortStableFunc(l.tests, func(a, b test) int { return cmp.Compare(a.took, b.took) })
	return nil
}

// measureOne adds a test if it passes and runs something of the package.
func (l *lab) measureOne(t test, program string) {
	data := filepath.Join(l.scratch, "coverage")
	// The test may start its own program again, either as another user in a separate namespace
	// (need.Covered), or without the coverage option.
	err := errors.Join(os.Mkdir(data, 0o700), os.Chmod(data, 0o777), os.Setenv("GOCOVERDIR", data))
	start := time.Now()
	var out string
	if err == nil {
		out, err = run(t.suite, 5*time.Minute, program, "-test.run=^"+t.name+"$", "-test.gocoverdir="+data)
	}
	t.took = time.Since(start)
	if err == nil {
		t.blocks, err = readCoverage(data)
	}
	_ = errors.Join(os.RemoveAll(data), os.Unsetenv("GOCOVERDIR")) // the next test has its own
	if err != nil {
		fmt.Printf("%s.%s fails without a mutation and is left out: %v\n%s\n", t.suite.path, t.name, err, out)
	} else if len(t.blocks) > 0 {
		l.tests = append(l.tests, t)
	}
}

// A result is the outcome of a mutation.
type result int

const (
	invalid   result = iota // it does not compile
	failed                  // a test failed
	late                    // a test ran out of time
	survived                // the tests that run its place pass
	unreached               // no test runs its place
)

// try tries one mutation.
func (l *lab) try(m mutation) (result, error) {
	source, err := os.ReadFile(m.file)
	if err != nil {
		return invalid, err
	}
	mutant, overlay := filepath.Join(l.scratch, "mutant.go"), filepath.Join(l.scratch, "overlay.json")
	text, err := json.Marshal(map[string]any{"Replace": map[string]string{m.file: mutant}})
	if err := errors.Join(err, os.WriteFile(mutant, m.apply(source), 0o600),
		os.WriteFile(overlay, text, 0o600)); err != nil {
		return invalid, err
	}
	reaching := slices.DeleteFunc(slices.Clone(l.tests), func(t test) bool { return !t.runs(m) })
	if len(reaching) == 0 {
		if exec.Command("go", "build", "-p=1", "-overlay", overlay, filepath.Dir(m.file)).Run() != nil {
			return invalid, nil
		}
		return unreached, nil
	}
	built := map[string]string{}
	for _, t := range reaching {
		program, ok := built[t.suite.path]
		if !ok {
			if program, err = l.build(t.suite, "-overlay", overlay); err != nil {
				return invalid, nil // the package compiled without the mutation
			}
			built[t.suite.path] = program
		}
		_, err := run(t.suite, 10*time.Second+10*t.took, program, "-test.run=^"+t.name+"$")
		switch {
		case errors.Is(err, os.ErrDeadlineExceeded):
			return late, nil
		case err != nil:
			return failed, nil
		}
	}
	return survived, nil
}

// print prints what a mutation that survived changes.
func (l *lab) print(m mutation, r result) {
	source, err := os.ReadFile(m.file)
	if err != nil {
		return // the file was read a moment ago
	}
	before := strings.Split(string(source), "\n")
	after := strings.Split(string(m.apply(source)), "\n")
	first, last := m.at.Line-1, m.at.Line-1+strings.Count(string(source[m.start:m.end]), "\n")
	changed := after[first : last+1+len(after)-len(before)]
	name := m.file
	if dir, err := os.Getwd(); err == nil {
		name = strings.TrimPrefix(name, dir+"/")
	}
	note := map[result]string{survived: "survived", unreached: "no test runs this"}[r]
	fmt.Printf("%s:%d: %s: %s\n-%s\n+%s\n", name, m.at.Line, note, m.kind,
		strings.Join(before[first:last+1], "\n-"), strings.Join(changed, "\n+"))
}
