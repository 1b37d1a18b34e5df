package plan_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"orrery/internal/plan"
)

// TestEveryKindIsTold: every kind of step has a text for progress output.
func TestEveryKindIsTold(t *testing.T) {
	text, err := os.ReadFile("step.go")
	if err != nil {
		t.Fatal(err)
	}
	kinds := regexp.MustCompile(`(?m)^\t[A-Z]\w+\s+Kind = "([a-z-]+)"`).FindAllStringSubmatch(string(text), -1)
	if len(kinds) < 25 {
		t.Fatalf("only %d kinds are known", len(kinds))
	}
	for _, kind := range kinds {
		s := &plan.Step{Kind: plan.Kind(kind[1]), Host: "sv1", Subject: "x", Reason: "y"}
		if strings.HasPrefix(s.Doing(), " ") {
			t.Errorf("a step of kind %s is told as %q", s.Kind, s.Doing())
		}
	}
}
