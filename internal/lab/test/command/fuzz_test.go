package command

import (
	"math"
	"regexp"
	"testing"
)

// FuzzAnswers: a command may print anything. The result is a number, or an error that explains why
// there is none.
func FuzzAnswers(f *testing.F) {
	for _, seed := range []string{"took 1.5 s", `{"a": {"b": 2}}`, "took NaN s", `{"a": {"b": "1e999"}}`, "",
		"took 1e308 s", `{"a": [`} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		factor := 1e-3
		for _, fig := range []figure{
			{Name: "regex", Regex: "took ([^ ]*)", pattern: regexp.MustCompile("took ([^ ]*)"), Factor: &factor},
			{Name: "json", JSON: "a.b"},
		} {
			if n, _, err := fig.read(text); err == nil && (math.IsNaN(n) || math.IsInf(n, 0)) {
				t.Fatalf("%s: %v", fig.Name, n)
			}
		}
	})
}
