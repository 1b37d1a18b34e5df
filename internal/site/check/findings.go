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

// maxMistakes limits the number of mistakes, because ten thousand nodes may all have the same one.
const maxMistakes = 10_000

func (f *findings) add(m Mistake) {
	if len(f.mistakes) < maxMistakes {
		m.What, m.Cure = problem.Short(m.What, 2000), problem.Short(m.Cure, 2000)
		f.mistakes = append(f.mistakes, m)
	}
}

// wrong adds a mistake. Argument what is the format for args.
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

// clash adds the mistake that two subjects exclude each other.
func (f *findings) clash(key, other []string, cure, what string, args ...any) {
	f.add(Mistake{Key: key, What: fmt.Sprintf(what, args...), Cure: cure, Other: other})
}

// maxSought limits the number of names whose nearest name is searched, because a search among many
// names is slow.
const maxSought = 50

// nearest returns the result of problem.Nearest. It computes the result once for each name of a
// kind, because ten thousand nodes may have the same mistake.
func (f *findings) nearest(kind, name string, known []string) string {
	key := [2]string{kind, name}
	nearest, ok := f.nearby[key]
	if !ok && len(f.nearby) < maxSought {
		nearest = problem.Nearest(name, known)
		f.nearby[key] = nearest
	}
	return nearest
}

// unknown adds the mistake that a name is not declared anywhere.
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
