package pack

import "orrery/internal/plan"

// Alone returns some steps of a plan as one of their own: numbered anew, in their order. What they
// need besides one another is taken for done.
func Alone(some []*plan.Step) []*plan.Step {
	numbers := map[int]int{}
	all := make([]*plan.Step, len(some))
	for i, s := range some {
		one := *s
		one.N, one.Needs = i, nil
		for _, need := range s.Needs {
			if n, here := numbers[need]; here {
				one.Needs = append(one.Needs, n)
			}
		}
		numbers[s.N], all[i] = i, &one
	}
	return all
}
