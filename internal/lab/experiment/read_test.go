package experiment

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"orrery/internal/lab/test"
	"orrery/internal/problem"
	"orrery/internal/strict"
)

var update = flag.Bool("update", false, "write the .want files anew")

// echo is a kind of test with an option of each type.
type echo struct {
	Streams []int         `toml:"streams"`
	Every   time.Duration `toml:"every"`
	File    strict.Size   `toml:"file"`
	Rate    float64       `toml:"rate"`
	Direct  bool          `toml:"direct"`
	Words   []string      `toml:"words"`
	Seed    uint8         `toml:"seed"`
	Level   level         `toml:"level"`
	More    struct {
		Depth int `toml:"depth"`
	} `toml:"more"`
	Env map[string]string `toml:"env"`
}

type level int

func (l *level) UnmarshalText(text []byte) error {
	if string(text) != "high" && string(text) != "7" {
		return errors.New("neither high nor 7")
	}
	*l = 7
	return nil
}

func (*echo) Needs() test.Needs                                           { return test.Needs{} }
func (*echo) Figures() []test.Figure                                      { return nil }
func (*echo) Check(context.Context, *test.Trial) error                    { return nil }
func (*echo) Run(context.Context, *test.Trial) (r test.Result, err error) { return }
func (*echo) Time() time.Duration                                         { return 10 * time.Second }

func newEcho(decode func(any) error) (test.Test, error) {
	e := &echo{Streams: []int{1}, Every: time.Second}
	if err := decode(e); err != nil {
		return nil, fmt.Errorf("echo: %w", err)
	}
	var wrong problem.List
	for _, n := range e.Streams {
		if n < 1 {
			wrong = append(wrong, problem.New(problem.Failed, "streams = %d is none", n).Try("at least 1"))
		}
	}
	if e.Rate < 0 {
		wrong = append(wrong, problem.New(problem.Mistake, "it is less than nothing").At("rate"))
	}
	if len(e.Words) > 3 {
		wrong = append(wrong, problem.New(problem.Mistake, "there are more than three").At("words"))
	}
	return e, wrong.OrNil()
}

// newPlain creates a test of a kind that does not decode any options.
func newPlain(func(any) error) (test.Test, error) { return &echo{}, nil }

func parse(path string, text []byte) (*Experiment, error) {
	r := reading{mistakes: mistakes{path: path}, kinds: map[string]newTest{"echo": newEcho, "plain": newPlain},
		experiment: &Experiment{Text: text}}
	r.read(text)
	if len(r.all) > 0 {
		return nil, r.sorted()
	}
	return r.experiment, nil
}

func TestFiles(t *testing.T) {
	paths, err := filepath.Glob("testdata/*valid-*.toml")
	if err != nil || len(paths) == 0 {
		t.Fatal("no testdata", err)
	}
	for _, path := range paths {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".toml"), func(t *testing.T) {
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			_, err = parse(filepath.Base(path), text)
			if strings.HasPrefix(filepath.Base(path), "valid-") {
				if err != nil {
					t.Fatal(err)
				}
				return
			}
			if problem.ExitCode(err) != int(problem.Mistake) {
				t.Fatalf("exit status %d: %v", problem.ExitCode(err), err)
			}
			got, want := err.Error()+"\n", strings.TrimSuffix(path, ".toml")+".want"
			if *update {
				if err := os.WriteFile(want, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			expected, err := os.ReadFile(want)
			if err != nil {
				t.Fatal(err)
			}
			if got != string(expected) {
				t.Errorf("got:\n%swant:\n%s", got, expected)
			}
		})
	}
}
