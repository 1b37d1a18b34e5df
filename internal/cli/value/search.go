package value

import (
	"errors"
	"regexp"
	"regexp/syntax"
	"time"

	"orrery/internal/problem"
)

// An Age is the value of a flag for how long ago something was.
type Age time.Duration

// Set parses a duration.
func (a *Age) Set(text string) error {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return problem.New(problem.Usage, "%q is not how long ago it was", text).Try("write 30s, 10m or 2h30m, for example")
	}
	*a = Age(d)
	return nil
}

func (a *Age) String() string {
	if *a == 0 {
		return ""
	}
	return time.Duration(*a).String()
}

// Type returns the kind of value for help texts.
func (a *Age) Type() string { return "time" }

// maxPatternBytes limits how long it takes to match a line.
const maxPatternBytes = 1 << 10

// A Pattern is the value of a flag with a regular expression. It is nil if the flag is not set.
type Pattern struct{ *regexp.Regexp }

// Set parses a regular expression in the syntax of RE2, which takes linear time.
func (p *Pattern) Set(text string) error {
	if len(text) > maxPatternBytes {
		return problem.New(problem.Usage, "the pattern has %d bytes; at most %d are allowed", len(text), maxPatternBytes)
	}
	compiled, err := regexp.Compile(text)
	var wrong *syntax.Error
	if errors.As(err, &wrong) {
		return problem.New(problem.Usage, "the pattern has a mistake at %q: %s", wrong.Expr, wrong.Code).
			Try(`put \ before a character that is meant literally; github.com/google/re2/wiki/Syntax describes patterns`)
	}
	p.Regexp = compiled
	return err
}

func (p *Pattern) String() string {
	if p.Regexp == nil {
		return ""
	}
	return p.Regexp.String()
}

// Type returns the kind of value for help texts.
func (p *Pattern) Type() string { return "pattern" }
