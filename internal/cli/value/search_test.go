package value

import (
	"strings"
	"testing"
	"time"

	"orrery/internal/problem"
)

// TestAge: only times in the past are accepted.
func TestAge(t *testing.T) {
	var a Age
	if err := a.Set("1h30m"); err != nil || time.Duration(a) != 90*time.Minute || a.String() != "1h30m0s" {
		t.Errorf("%v, %v", a, err)
	}
	for _, text := range []string{"", "0s", "-10m", "10", "10 m", "yesterday", "999999999h"} {
		if err := a.Set(text); !problem.Is(err, problem.Usage) || !strings.Contains(err.Error(), "10m") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestPattern: a mistake in a pattern is named, and patterns are bounded.
func TestPattern(t *testing.T) {
	var p Pattern
	if p.String() != "" {
		t.Errorf("an unset pattern is %q", p.String())
	}
	if err := p.Set(`(?i)out of memory|oom\b`); err != nil || !p.MatchString("kernel: Out of memory") {
		t.Errorf("%v, %v", p, err)
	}
	for text, why := range map[string]string{
		"a(b":                                  `mistake at "a(b": missing closing )`,
		"*":                                    "missing argument to repetition operator",
		`(a)\1`:                                "invalid escape sequence",
		"(?=a)":                                "invalid or unsupported Perl syntax",
		"(x{1000}){1000}":                      "invalid repeat count",
		"\xff":                                 "invalid UTF-8",
		strings.Repeat("a", maxPatternBytes+1): "at most 1024",
	} {
		if err := p.Set(text); !problem.Is(err, problem.Usage) || !strings.Contains(err.Error(), why) {
			t.Errorf("%q: %v", text, err)
		}
	}
}
