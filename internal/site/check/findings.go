package check

import (
	"fmt"

	"orrery/internal/problem"
)

// findings are the mistakes found so far.
type findings struct {
	mistakes []Issue
	nearby   map[[2]string]string // see nearest
}

func newFindings() *findings { return &findings{nearby: map[[2]string]string{}} }

// maxIssues limits the number of mistakes, because ten thousand nodes may all have the same one.
const maxIssues = 10_000

func (f *findings) add(m Issue) {
	if len(f.mistakes) < maxIssues {
		m.What, m.Cure = problem.Truncate(m.What, 2000), problem.Truncate(m.Cure, 2000)
		f.mistakes = append(f.mistakes, m)
	}
}

// report adds a mistake. Argument what is the format for args.
func (f *findings) report(key []string, cure, what string, args ...any) {
	if len(f.mistakes) >= maxIssues {
		return
	}
	for i := range args {
		if text, ok := args[i].(string); ok {
			args[i] = problem.Truncate(text, 200)
		}
	}
	f.add(Issue{Key: key, What: fmt.Sprintf(what, args...), Cure: cure})
}

// reportConflict adds the mistake that two subjects exclude each other.
func (f *findings) reportConflict(key, other []string, cure, what string, args ...any) {
	f.add(Issue{Key: key, What: fmt.Sprintf(what, args...), Cure: cure, Other: other})
}

// maxNearestSearches limits the number of names whose nearest name is searched, because a search among many
// names is slow.
const maxNearestSearches = 50

// nearest returns the result of problem.Suggest. It computes the result once for each name of a
// kind, because ten thousand nodes may have the same mistake.
func (f *findings) nearest(kind, name string, known []string) string {
	key := [2]string{kind, name}
	nearest, ok := f.nearby[key]
	if !ok && len(f.nearby) < maxNearestSearches {
		nearest = problem.Suggest(name, known)
		f.nearby[key] = nearest
	}
	return nearest
}

// reportUnknown adds the mistake that a name is not declared anywhere.
func (f *findings) reportUnknown(key []string, kind, name string, known []string) {
	if len(f.mistakes) >= maxIssues {
		return
	}
	cure := fmt.Sprintf("declare [%s.%s]", kind, problem.Truncate(name, 200))
	if nearest := f.nearest(kind, name, known); nearest != "" {
		cure = fmt.Sprintf("did you mean %q?", nearest)
	} else if len(known) > 0 && len(known) <= 8 {
		cure += " or use " + sentence(known)
	}
	f.report(key, cure, "%s %q is not declared", kind, name)
}
