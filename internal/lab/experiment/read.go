package experiment

import (
	_ "embed"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"orrery/internal/problem"
	"orrery/internal/strict"
	"orrery/internal/text/pattern"
	"orrery/internal/tree"
)

// format is the version that the types in file.go describe.
const format = 1

// Suffix is the file name suffix of experiments.
const Suffix = ".toml"

// maxFileBytes limits the size of an experiment's file.
const maxFileBytes = 1 << 20

//go:embed default.toml
var defaultText []byte

// Default returns the experiment of `orrery lab run` without a file: a container against the bare
// host.
func Default() *Experiment {
	e, err := Parse("default"+Suffix, defaultText, "")
	if err != nil {
		panic(err) // a test reads it
	}
	return e
}

// Read reads an experiment's file. Its error is a problem.List of all mistakes. processors are
// those of the measured host, as listed by the kernel, or "" if unknown.
func Read(path, processors string) (*Experiment, error) {
	text, err := tree.ReadFile(path, maxFileBytes)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, problem.List{missingFile(path)}
	case errors.Is(err, tree.ErrNotRegular):
		return nil, problem.List{mistake("this is not a regular file").At(path).Try("name an experiment, such as lab/x%s", Suffix)}
	case errors.Is(err, tree.ErrTooLarge):
		return nil, problem.List{mistake("the file has more than %d KiB",
			maxFileBytes>>10).At(path).Try("check that it is the right file")}
	case err != nil:
		return nil, problem.List{mistake("cannot be read").At(path).Because(err).Try("make it readable")}
	}
	return Parse(path, text, processors)
}

// missingFile returns an error for a missing file, with the names of other experiments nearby.
func missingFile(path string) *problem.Problem {
	p := mistake("there is no such file").At(path)
	dir := filepath.Dir(path)
	var beside []string
	entries, _ := os.ReadDir(dir)
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), Suffix) {
			beside = append(beside, e.Name())
		}
	}
	switch nearest := problem.Suggest(filepath.Base(path), beside); {
	case nearest != "":
		return p.Try("did you mean %s?", filepath.Join(dir, nearest))
	case len(beside) > 0:
		return p.Try("%s has %s", dir, strings.Join(beside, ", "))
	}
	return p.Try("orrery lab run --show prints an example")
}

// Parse reads an experiment from the text of its file. The path determines its name and is used in
// messages.
func Parse(path string, text []byte, processors string) (*Experiment, error) {
	r := reading{mistakes: mistakes{path: path}, processors: processors, kinds: allKinds(),
		experiment: &Experiment{Text: text}}
	r.read(text)
	if len(r.all) > 0 {
		return nil, r.sorted()
	}
	return r.experiment, nil
}

// A reading is the state while a file is read.
type reading struct {
	mistakes
	processors string // of the host, or "" if unknown
	kinds      map[string]newTest
	root       *strict.Node
	file       file
	experiment *Experiment
}

func (r *reading) read(text []byte) {
	root, syntax := strict.Parse(text)
	if syntax != nil {
		r.addMistake(&strict.Node{Line: syntax.Line}, mistake("this is not TOML: %s", syntax.What))
		return
	}
	r.root = root
	strict.Table(root, "", r.addMistake, &r.file)
	if r.file.Format != nil && *r.file.Format != format {
		r.addMistake(root.At("format"), mistake("format %d is unknown",
			*r.file.Format).Try("this Orrery reads format %d",
			format))
		return
	}
	r.head()
	r.settings()
	r.tests()
	r.checkCombinations()
	r.addControl()
}

// validName matches a legal name of an experiment, a setting or a test, which is also used for nodes and
// directories.
var validName = pattern.New(`^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$`)

// checkName checks a name.
func (r *reading) checkName(at *strict.Node, kind, given string) bool {
	if validName().MatchString(given) {
		return true
	}
	p := mistake("%s name %q is invalid", kind, given).Try(`use at most 32 lower case letters, digits and "-"`)
	if cured := suggestName(given); cured != given && validName().MatchString(cured) {
		p.Try("write %q: at most 32 lower case letters, digits and \"-\"", cured)
	}
	r.addMistake(at, p)
	return false
}

// suggestName returns a similar legal name, if possible.
func suggestName(given string) string {
	return strings.Trim(strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= '0' && c <= '9' {
			return c
		}
		return '-'
	}, strings.ToLower(given)), "-")
}
