package check

import (
	"fmt"

	"orrery/internal/problem"
)

// findings are the mistakes found so far.
type findings struct {
	mistakes []Mistake
	nearby   map[[2]string]string // see nearest
}

func newFindings() *findings { return &findings{nearby: map[[2]string]string{}} }

// maxMistakes bounds what is found: of ten thousand nodes each may have the same.
const maxMistakes = 10_000

func (f *findings) add(m Mistake) {
	if len(f.mistakes) < maxMistakes {
		m.What, m.Cure = problem.Short(m.What, 2000), problem.Short(m.Cure, 2000)
		f.mistakes = append(f.mistakes, m)
	}
}

// wrong adds a mistake. What is the format of args.
func (f *findings) wrong(key []string, cure, what string, args ...any) {
	if len(f.mistakes) >= maxMistakes {
		return
	}
	for i := range args {
		if text, ok := args[i].(string); ok {
			args[i] = problem.Short(text, 200)
		}
	}
	f.add(Mistake{Key: key, What: fmt.Sprintf(what, args...), Cure: cure})
}

// clash adds the mistake of two things that cannot both be.
func (f *findings) clash(key, other []string, cure, what string, args ...any) {
	f.add(Mistake{Key: key, What: fmt.Sprintf(what, args...), Cure: cure, Other: other})
}

// maxSought bounds for how many names the nearest is sought, which takes a while among many.
const maxSought = 50

// nearest is problem.Nearest, computed once for each name of a kind: ten thousand nodes may have
// the same mistake.
func (f *findings) nearest(kind, name string, known []string) string {
	key := [2]string{kind, name}
	nearest, ok := f.nearby[key]
	if !ok && len(f.nearby) < maxSought {
		nearest = problem.Nearest(name, known)
		f.nearby[key] = nearest
	}
	return nearest
}

// unknown adds the mistake of a name that is declared nowhere.
func (f *findings) unknown(key []string, kind, name string, known []string) {
	if len(f.mistakes) >= maxMistakes {
		return
	}
	cure := fmt.Sprintf("declare [%s.%s]", kind, problem.Short(name, 200))
	if nearest := f.nearest(kind, name, known); nearest != "" {
		cure = fmt.Sprintf("did you mean %q?", nearest)
	} else if len(known) > 0 && len(known) <= 8 {
		cure += " or use " + sentence(known)
	}
	f.wrong(key, cure, "%s %q is not declared", kind, name)
}
